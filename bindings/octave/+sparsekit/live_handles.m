% SPDX-License-Identifier: Apache-2.0

% sparsekit.live_handles() gives how many handles of the library are alive.
function count = live_handles()
  count = double(sparsekit.internal.call("live_handles"));
end
