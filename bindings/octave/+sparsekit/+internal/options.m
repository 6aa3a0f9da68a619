% SPDX-License-Identifier: Apache-2.0

% options(DEFAULTS, {NAME, VALUE, ...}) gives the struct DEFAULTS with the values that are named.
function chosen = options(defaults, pairs)
  chosen = defaults;
  if mod(numel(pairs), 2) != 0
    error("sparsekit:invalid_argument", "options: expected names and values in pairs");
  end
  for i = 1:2:numel(pairs)
    if !ischar(pairs{i}) || !isfield(defaults, pairs{i})
      error("sparsekit:invalid_argument", "options: expected one of %s",
            strjoin(fieldnames(defaults)', ", "));
    end
    chosen.(pairs{i}) = pairs{i + 1};
  end
end
