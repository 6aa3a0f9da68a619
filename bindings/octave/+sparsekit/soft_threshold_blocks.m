% SPDX-License-Identifier: Apache-2.0

% [W, REPORT] = sparsekit.soft_threshold_blocks(W, SHAPE, THRESHOLD) is group soft thresholding of a
% single or double matrix: each block of SHAPE, such as [1 8], becomes
% w max(0, 1 - THRESHOLD / ||w||).
function [w, report] = soft_threshold_blocks(w, shape, threshold, varargin)
  view = sparsekit.View(w);
  [w, report] = view.soft_threshold_blocks(shape, threshold, varargin{:});
end
