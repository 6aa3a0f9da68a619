% SPDX-License-Identifier: Apache-2.0

% callback(FN) gives what the library calls as FN, a function of one column of numbers; [] for [].
function callback = callback(fn)
  callback = [];
  if !isempty(fn)
    callback = sparsekit.internal.call("Callback", fn);
  end
end
