% SPDX-License-Identifier: Apache-2.0

% mode("GROW", "struct_gradient_mean") gives the number of SPK_GROW_STRUCT_GRADIENT_MEAN.
function number = mode(kind, name)
  if !ischar(name)
    error("sparsekit:invalid_argument", "%s: got no name, expected a text", tolower(kind));
  end
  try
    number = sparsekit.internal.constant([kind "_" toupper(name)]);
  catch
    error("sparsekit:invalid_argument", "%s: there is no '%s'", tolower(kind), name);
  end
end
