% SPDX-License-Identifier: Apache-2.0

% sparsekit.executor_available(NAME) gives whether contexts with this executor, such as "tbb", can be
% made.
function available = executor_available(name)
  number = sparsekit.internal.mode("EXECUTOR", name);
  available = sparsekit.internal.call("executor_available", number) == 1;
end
