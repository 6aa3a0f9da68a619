% SPDX-License-Identifier: Apache-2.0

% [W, REPORT] = sparsekit.prune_unstructured(W, SPARSITY) zeroes exactly the floor(SPARSITY *
% numel(W)) elements of smallest magnitude of a single or double matrix.
function [w, report] = prune_unstructured(w, sparsity, varargin)
  view = sparsekit.View(w);
  [w, report] = view.prune_unstructured(sparsity, varargin{:});
end
