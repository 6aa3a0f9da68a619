% SPDX-License-Identifier: Apache-2.0

% sparsekit.library_version() gives the version of the library that is loaded, such as "0.1.0".
function text = library_version()
  number = double(sparsekit.internal.call("version"));
  text = sprintf("%d.%d.%d", floor(number / 10000), mod(floor(number / 100), 100), ...
                 mod(number, 100));
end
