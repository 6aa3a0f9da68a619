% SPDX-License-Identifier: Apache-2.0

% constant(NAME) gives a constant of the headers, without its SPK_.
function number = constant(name)
  native = sparsekit.internal.native();
  number = double(native.(name));
end
