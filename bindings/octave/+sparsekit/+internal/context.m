% SPDX-License-Identifier: Apache-2.0

% context(X) gives the handle of a Context; [] is the process default.
function handle = context(x)
  handle = [];
  if isnumeric(x) && isempty(x)
    return;
  end
  handle = sparsekit.internal.handle_of(x, "Context");
  if isempty(handle)
    error("sparsekit:invalid_argument", "context: got a closed one, expected an open handle");
  end
end
