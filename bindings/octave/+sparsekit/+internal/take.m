% SPDX-License-Identifier: Apache-2.0

% take(DTYPE, COUNT) gives memory for COUNT elements that the library is going to write.
function memory = take(dtype, count)
  [~, numbers, classes] = sparsekit.internal.dtypes();
  elements = zeros(count, 1, classes{numbers == dtype});
  memory = sparsekit.internal.call("Memory", elements, dtype);
end
