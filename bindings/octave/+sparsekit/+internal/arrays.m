% SPDX-License-Identifier: Apache-2.0

% arrays(X) gives a list of arrays (one, or a cell array of them) as the library takes it: an Array
% is its memory, a matrix is itself.
function list = arrays(x)
  if !iscell(x)
    x = {x}(!(isnumeric(x) && isempty(x)));
  end
  list = cellfun(@argument, x, "UniformOutput", false);
end

function argument = argument(x)
  if isa(x, "sparsekit.Array")
    argument = x.memory;
  elseif islogical(x)
    argument = uint8(x);
  else
    argument = x;
  end
end
