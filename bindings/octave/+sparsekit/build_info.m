% SPDX-License-Identifier: Apache-2.0

% sparsekit.build_info() gives one line for a bug report: version, executors, instruction sets.
function text = build_info()
  text = sparsekit.internal.call("build_info");
end
