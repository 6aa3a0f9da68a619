% SPDX-License-Identifier: Apache-2.0

% call(NAME, ...) calls the wrapped function NAME of the library.
function varargout = call(name, varargin)
  persistent native
  if isempty(native)
    native = sparsekit.internal.native();
  end
  [varargout{1:nargout}] = native.(name)(varargin{:});
end
