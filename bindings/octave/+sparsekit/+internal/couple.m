% SPDX-License-Identifier: Apache-2.0

% [HANDLE, ARRAYS] = couple(KIND, MEMBERS, ORDERS, NAME) couples members of KIND, "Block" or
% "Scope": the handle of the coupling, and the arrays of all of them.
function [handle, arrays] = couple(kind, members, orders, name)
  if !iscell(members)
    members = {members};
  end
  handles = cell(size(members));
  arrays = {};
  for i = 1:numel(members)
    handles{i} = sparsekit.internal.handle_of(members{i}, kind);
    arrays = [arrays, members{i}.arrays];
  end
  permutations = (orders - 1)';
  handle = sparsekit.internal.call([tolower(kind) "_couple"], handles, permutations(:)', name);
end
