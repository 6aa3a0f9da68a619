% SPDX-License-Identifier: Apache-2.0

% sparsekit.View: an array and how its elements lie in it.
%
%     view = sparsekit.View(w)                         % all of a matrix
%     view = sparsekit.View(w, shape, stride, offset)  % in elements; see below
%     view = sparsekit.View(w, "(3,4):(8,2)+1")        % shape:stride+offset as text
%
% W is a real floating-point matrix, or a sparsekit.Array, which several views may share. Its
% elements are counted in Octave's order, column after column, from 0. Element (i, j, ...) of the
% view, counted from 0, is the one at offset + i * stride(1) + j * stride(2) + ...
%
% SHAPE is that of the matrix if it is not given. STRIDE is column-major if it is not given: the
% view of an m x n matrix has the shape [m n] and the strides [1 m], so that its rows are the rows
% of the matrix. The text form is the library's own, where no strides mean row-major. OFFSET is 0.
%
% Operations write the view's array in place and return it as a matrix; a variable of yours changes
% only where you assign it:
%
%     w = sparsekit.View(w).prune_nm(2, 2, 4);
%
% Options of all operations, by name and value: "into", a matrix or Array that receives the result
% while the view's array stays as it is; "context", a sparsekit.Context.
classdef View < handle
  properties (SetAccess = private)
    handle       % of the library; [] when closed
    arrays = {}  % the sparsekit.Array in a cell array
  end

  methods
    function self = View(array, shape, stride, offset)
      self.arrays = sparsekit.internal.boxes({array}, {});
      if nargin > 1 && strcmp(class(shape), "swig_ref")
        self.handle = shape;
        return;
      end
      dtype = self.array().memory.dtype();
      if nargin > 1 && ischar(shape)
        self.handle = sparsekit.internal.call("view_parse", dtype, shape);
        return;
      end
      if nargin < 2
        shape = self.array().shape();
      end
      if nargin < 3
        stride = [1, cumprod(shape(1:end-1))];
      end
      if nargin < 4
        offset = 0;
      end
      self.handle = sparsekit.internal.call("view_create", dtype, shape, stride, offset);
    end

    % The sparsekit.Array.
    function array = array(self)
      array = self.arrays{1};
    end

    % Gives the handle back; every later use fails.
    function close(self)
      self.handle = [];
    end

    % --- facts ---

    % The text form, such as (3,4):(8,2)+1.
    function text = format(self)
      text = sparsekit.internal.call("view_format", self.handle);
    end
    % Name of the dtype: f32 f64 f16 bf16.
    function name = dtype(self)
      name = sparsekit.internal.dtype_name(sparsekit.internal.call("view_dtype", self.handle));
    end
    function extents = shape(self)
      extents = sparsekit.internal.call("view_shape", self.handle);
    end
    function strides = stride(self)
      strides = sparsekit.internal.call("view_stride", self.handle);
    end
    function offset = offset(self)
      offset = double(sparsekit.internal.call("view_offset", self.handle));
    end
    % How many elements the view has.
    function count = element_count(self)
      count = double(sparsekit.internal.call("view_numel", self.handle));
    end
    % How many elements its layout spans, without the offset.
    function count = cosize(self)
      count = double(sparsekit.internal.call("view_cosize", self.handle));
    end
    % How far the element at SUBSCRIPTS, such as [2 3], is from the first one of the array.
    function distance = linear_offset(self, subscripts)
      distance = double(sparsekit.internal.call("view_linear_offset", self.handle, subscripts - 1));
    end
    % Row and column of the element at SUBSCRIPTS in a matrix of COLUMNS columns that lies row after
    % row in the array.
    function [row, column] = to_param_rc(self, subscripts, columns)
      at = sparsekit.internal.call("view_to_param_rc", self.handle, subscripts - 1, columns) + 1;
      row = at(1);
      column = at(2);
    end
    % The blocks of SHAPE as a view of the same array: (B1, b1, B2, b2, ...), with REORDER
    % (B1, B2, ..., b1, b2, ...).
    function view = block_view(self, shape, reorder)
      handle = sparsekit.internal.call("view_block_view_of", self.handle, shape, reorder);
      view = sparsekit.View(self.array(), handle);
    end

    % --- operations ---

    % Keeps the N largest of every M elements along dimension DIM (1, 2, ...; -1 is the last).
    % [RESULT, REPORT]: see sparsekit.Block.
    function [result, report] = prune_nm(self, dim, n, m, varargin)
      [result, report] = sparsekit.internal.write("prune_nm", self, view_options(varargin), ...
                                                  sparsekit.internal.axis_number(dim), n, m);
    end
    % Zeroes exactly the floor(SPARSITY * element_count) elements of smallest magnitude.
    function [result, report] = prune_unstructured(self, sparsity, varargin)
      [result, report] = sparsekit.internal.write("prune_unstructured", self, ...
                                                  view_options(varargin), sparsity);
    end
    % Group soft thresholding of blocks of SHAPE with one threshold.
    function [result, report] = soft_threshold_blocks(self, shape, threshold, varargin)
      [result, report] = sparsekit.internal.write("soft_threshold_blocks", self, ...
                                                  view_options(varargin), shape, threshold);
    end
    % Zeroes the blocks of SHAPE ([]: elements) whose MASK, a matrix of the grid's shape, is 1.
    function result = apply_mask(self, mask, shape, varargin)
      result = apply("view_apply_mask", self, mask, shape, varargin);
    end
    % Zeroes the blocks whose mask is 0.
    function result = apply_keep_mask(self, mask, shape, varargin)
      result = apply("view_apply_keep_mask", self, mask, shape, varargin);
    end
    % Scales each block by its number in MULTIPLIER.
    function result = apply_multiplier(self, multiplier, shape, varargin)
      result = apply("view_apply_multiplier", self, multiplier, shape, varargin);
    end
    % The blocks of SHAPE gathered: an array (grid..., elements of a block).
    function blocks = merged(self, shape, varargin)
      options = view_options(varargin);
      grid = sparsekit.internal.grid_shape(self, shape);
      out = sparsekit.internal.take(self.array().memory.dtype(), self.element_count());
      sparsekit.internal.call("view_block_view_merged", sparsekit.internal.context(options.context),
                              self.handle, sparsekit.internal.arrays(self.arrays), shape, out);
      blocks = sparsekit.internal.from_rows(out.value(), [grid, out.numel() / prod(grid)]);
    end
    % VALUES, one per block of SHAPE, repeated over the elements: an array of the view's shape.
    function elements = broadcast(self, values, shape, varargin)
      options = view_options(varargin);
      grid = sparsekit.internal.grid(values, sparsekit.internal.grid_shape(self, shape));
      out = sparsekit.internal.take(sparsekit.internal.dtype_of(values), self.element_count());
      sparsekit.internal.call("view_broadcast_block_to_element",
                              sparsekit.internal.context(options.context), self.handle, shape, ...
                              grid, out);
      elements = sparsekit.internal.from_rows(out.value(), self.shape());
    end
  end
end

function options = view_options(pairs)
  options = sparsekit.internal.options(struct("into", [], "context", []), pairs);
end

function result = apply(name, view, values, shape, pairs)
  values = sparsekit.internal.grid(values, sparsekit.internal.grid_shape(view, shape));
  result = sparsekit.internal.write(name, view, view_options(pairs), shape, values);
end
