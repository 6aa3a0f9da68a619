% SPDX-License-Identifier: Apache-2.0

% from_each(MEMORIES, SHAPES) gives what the library wrote as arrays of these shapes.
function values = from_each(memories, shapes)
  values = cellfun(@(memory, shape) sparsekit.internal.from_rows(memory.value(), shape), ...
                   memories, shapes, "UniformOutput", false);
end
