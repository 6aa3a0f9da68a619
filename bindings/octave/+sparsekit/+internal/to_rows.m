% SPDX-License-Identifier: Apache-2.0

% to_rows(X) gives the elements of X as the library orders those of masks, scores and thresholds:
% row after row, the last subscript fastest.
function elements = to_rows(x)
  elements = permute(x, ndims(x):-1:1)(:);
end
