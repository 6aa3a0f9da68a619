% SPDX-License-Identifier: Apache-2.0

% axis_number(DIM) gives the library's number of dimension DIM, which counts from 1, or backwards
% from -1.
function number = axis_number(dim)
  if !isscalar(dim) || dim == 0
    error("sparsekit:invalid_argument", "dimension: got 0 or several, expected one from 1, or < 0");
  end
  number = dim - (dim > 0);
end
