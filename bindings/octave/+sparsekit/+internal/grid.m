% SPDX-License-Identifier: Apache-2.0

% grid(X, SHAPE) gives what the library reads for an array X of this shape: an Array as it lies in
% memory, a matrix row after row. One number stands for all, [] for none. A wrong number of elements
% is for the library to refuse.
function argument = grid(x, shape)
  if isa(x, "sparsekit.Array")
    argument = x.memory;
    return;
  end
  if islogical(x)
    x = uint8(x);
  end
  extents = shape(shape != 1);
  given = size(x)(size(x) != 1);
  if numel(x) == prod(shape) && !isequal(given(:), extents(:))
    error("sparsekit:shape_mismatch", "array: got the shape %s, expected %s",
          mat2str(size(x)), mat2str(shape));
  end
  argument = sparsekit.internal.to_rows(x);
end
