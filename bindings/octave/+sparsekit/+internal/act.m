% SPDX-License-Identifier: Apache-2.0

% act(FN, ...) calls FN for what it does, and gives the library the number that it wants.
function number = act(fn, varargin)
  fn(varargin{:});
  number = 0;
end
