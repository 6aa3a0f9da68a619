% SPDX-License-Identifier: Apache-2.0

% dtype_of(X) gives the number of the dtype of a matrix or an Array.
function number = dtype_of(x)
  if isa(x, "sparsekit.Array")
    number = x.memory.dtype();
  elseif islogical(x)
    number = sparsekit.internal.dtype_number("u8");
  else
    memory = sparsekit.internal.call("Memory", x, 0);
    number = memory.dtype();
  end
end
