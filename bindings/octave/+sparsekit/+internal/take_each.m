% SPDX-License-Identifier: Apache-2.0

% take_each(DTYPE, SHAPES) gives memory for an array of each of SHAPES, a cell array.
function memories = take_each(dtype, shapes)
  memories = cellfun(@(shape) sparsekit.internal.take(dtype, prod(shape)), shapes, ...
                     "UniformOutput", false);
end
