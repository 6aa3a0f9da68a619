% SPDX-License-Identifier: Apache-2.0

% handle_of(X, "View") gives the handle of a sparsekit.View, and refuses anything else.
function handle = handle_of(x, kind)
  if !isa(x, ["sparsekit." kind])
    error("sparsekit:invalid_argument", "%s: got class %s, expected sparsekit.%s", tolower(kind),
          class(x), kind);
  end
  handle = x.handle;
end
