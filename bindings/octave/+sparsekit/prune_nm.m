% SPDX-License-Identifier: Apache-2.0

% [W, REPORT] = sparsekit.prune_nm(W, DIM, N, M) keeps the N largest of every M elements of a single
% or double matrix along dimension DIM (2: along its rows), and zeroes the rest.
function [w, report] = prune_nm(w, dim, n, m, varargin)
  view = sparsekit.View(w);
  [w, report] = view.prune_nm(dim, n, m, varargin{:});
end
