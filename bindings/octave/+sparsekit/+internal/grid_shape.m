% SPDX-License-Identifier: Apache-2.0

% grid_shape(VIEW, SHAPE) gives the grid of blocks of SHAPE over VIEW.
function grid = grid_shape(view, shape)
  extents = view.shape();
  grid = extents;
  if numel(shape) == numel(extents)
    shape(shape <= 0) = extents(shape <= 0);
    grid = floor(extents ./ shape);
  end
end
