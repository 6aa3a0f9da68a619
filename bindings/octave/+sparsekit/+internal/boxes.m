% SPDX-License-Identifier: Apache-2.0

% boxes(X, LIKE) gives the Arrays of a list X (one, or a cell array): a matrix is put into a new
% Array, of the dtype that its counterpart in LIKE, a list of Arrays, has.
function list = boxes(x, like)
  if !iscell(x)
    x = {x}(!(isnumeric(x) && isempty(x)));
  end
  list = x;
  for i = 1:numel(x)
    if !isa(x{i}, "sparsekit.Array")
      dtype = [];
      if isa(x{i}, "uint16") && i <= numel(like)
        dtype = like{i}.dtype();
      end
      list{i} = sparsekit.Array(x{i}, dtype);
    end
  end
end
