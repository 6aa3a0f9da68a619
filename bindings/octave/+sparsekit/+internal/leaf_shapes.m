% SPDX-License-Identifier: Apache-2.0

% leaf_shapes(X) gives the shapes of the leaves of a Block or a Scope.
function shapes = leaf_shapes(x)
  shapes = cell(1, x.leaf_count());
  for i = 1:numel(shapes)
    view = x.leaf_view(i);
    shapes{i} = view.shape();
  end
end
