% SPDX-License-Identifier: Apache-2.0

% values_of(ARRAYS) gives the matrix of the one Array in a list, or a cell array of several.
function result = values_of(arrays)
  result = cellfun(@(array) array.value, arrays, "UniformOutput", false);
  if numel(result) == 1
    result = result{1};
  end
end
