% SPDX-License-Identifier: Apache-2.0

% dtype_number("f16") gives the number of a dtype; 0 for [].
function number = dtype_number(name)
  if isempty(name)
    number = 0;
    return;
  end
  [names, numbers] = sparsekit.internal.dtypes();
  found = strcmp(name, names);
  if !any(found)
    error("sparsekit:unsupported_dtype", "dtype: got another one, expected one of %s",
          strjoin(names, ", "));
  end
  number = numbers(found);
end
