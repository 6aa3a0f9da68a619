% SPDX-License-Identifier: Apache-2.0

% from_rows(ELEMENTS, SHAPE) is the inverse of to_rows: an array of this shape.
function x = from_rows(elements, shape)
  shape = [shape, ones(1, 2 - numel(shape))];
  x = permute(reshape(elements, fliplr(shape)), numel(shape):-1:1);
end
