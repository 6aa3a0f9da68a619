% SPDX-License-Identifier: Apache-2.0

% dtype_name(NUMBER) gives the name of a dtype.
function name = dtype_name(number)
  [names, numbers] = sparsekit.internal.dtypes();
  name = names{numbers == double(number)};
end
