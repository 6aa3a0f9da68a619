% SPDX-License-Identifier: Apache-2.0

% sparsekit.Array: elements that the library works on, in place.
%
%     weights = sparsekit.Array(single(randn(64, 128)));
%     weights.value                        % the matrix, of the same class and size
%     weights.value = weights.value * 2;   % other elements, of the same class
%     sparsekit.Array(words, "bf16")       % 16-bit words in a uint16 matrix: f16 or bf16
%     sparsekit.Array.rows(mask)           % a mask: lies row after row, see below
%
% A matrix of Octave is a value: nobody can change it behind your back, so neither can the library.
% An Array is a handle: all views and layers that use it see the same elements. Making one copies
% nothing; the elements are copied once, when the library first writes what a variable of yours also
% holds.
%
% Classes and dtypes: single f32, double f64, uint8 and logical u8, int64 i64; uint16 needs "f16" or
% "bf16". Other classes and complex numbers are refused with sparsekit:unsupported_dtype.
%
% Octave's matrices lie column after column, and so does an Array. The library's masks and scores
% lie row after row: sparsekit.Array.rows stores them so, and its value still is the matrix you
% know.
classdef Array < handle
  properties (SetAccess = private)
    memory   % what the library is given
  end
  properties (Access = private)
    extents  % size of the matrix
    by_rows  % whether the elements lie row after row
  end
  properties (Dependent)
    value    % the elements, as a matrix
  end

  methods
    % Array(VALUE, DTYPE): DTYPE only for uint16.
    function self = Array(value, dtype, by_rows)
      if nargin < 2
        dtype = [];
      end
      if islogical(value)
        value = uint8(value);
      end
      self.by_rows = nargin > 2 && by_rows;
      self.extents = size(value);
      if self.by_rows
        value = sparsekit.internal.to_rows(value);
      end
      number = sparsekit.internal.dtype_number(dtype);
      self.memory = sparsekit.internal.call("Memory", value, number);
    end

    function value = get.value(self)
      value = self.memory.value();
      if self.by_rows
        value = sparsekit.internal.from_rows(value, self.extents);
      else
        value = reshape(value, self.extents);
      end
    end

    function set.value(self, value)
      if islogical(value)
        value = uint8(value);
      end
      extents = size(value);
      if self.by_rows
        value = sparsekit.internal.to_rows(value);
      end
      self.memory.assign(value);
      self.extents = extents;
    end

    % Name of the dtype: f32 f64 f16 bf16 u8 i64.
    function name = dtype(self)
      name = sparsekit.internal.dtype_name(self.memory.dtype());
    end

    % Size of the matrix.
    function extents = shape(self)
      extents = self.extents;
    end

    % Where the library finds the first element.
    function number = address(self)
      number = double(sparsekit.internal.call("address", self.memory));
    end
  end

  methods (Static)
    % An Array whose elements lie row after row.
    function array = rows(value, dtype)
      if nargin < 2
        dtype = [];
      end
      array = sparsekit.Array(value, dtype, true);
    end
  end
end
