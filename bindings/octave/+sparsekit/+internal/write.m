% SPDX-License-Identifier: Apache-2.0

% [RESULT, REPORT] = write(NAME, OWNER, OPTIONS, ...) calls a function that writes the arrays of
% OWNER, or instead of them those of OPTIONS.into. RESULT is the matrix that was written, or a cell
% array if there are several; REPORT is asked for only from functions that give one.
function [result, report] = write(name, owner, options, varargin)
  targets = sparsekit.internal.boxes(options.into, owner.arrays);
  arguments = {sparsekit.internal.context(options.context), owner.handle, ...
               sparsekit.internal.arrays(owner.arrays), sparsekit.internal.arrays(targets), ...
               varargin{:}};
  if nargout > 1
    report = sparsekit.internal.report(sparsekit.internal.call(name, arguments{:}));
  else
    sparsekit.internal.call(name, arguments{:});
  end
  if isempty(targets)
    targets = owner.arrays;
  end
  result = sparsekit.internal.values_of(targets);
end
