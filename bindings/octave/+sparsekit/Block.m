% SPDX-License-Identifier: Apache-2.0

% sparsekit.Block: a view cut into a grid of equal blocks, which live or die as one.
%
%     block = sparsekit.Block(view, [1 8], "heads")       % 1 x 8 elements each
%     block = sparsekit.Block(view)                       % every element is a block
%     block = sparsekit.Block.couple({a, b}, orders, "neurons")
%
% SHAPE must divide the view's; an extent <= 0 spans its dimension. A coupling makes block i of each
% of its members one block; row k of ORDERS, if given, permutes the axes of the grid of member k as
% `permute` would. The members' grids must then agree, else sparsekit:coupling.
%
% A block knows the arrays of its leaves (one, or for a coupling all of its members'), so operations
% need no data. Those that write do so in place, and give
%
%     [result, report] = block.soft_threshold(0.5);
%
% the matrix that was written (a cell array of them, if there are several leaves) and a struct:
% total, requested (-1 where thresholds decide), achieved, ties, not_converged, all numbers of
% blocks. A variable of yours changes only where you assign the result.
%
% Masks, norms, thresholds and the like are matrices of the grid's shape: element (i, j) belongs to
% block (i, j). A threshold may be one number for all blocks. An Array is taken as it lies in
% memory, which for the library is row after row: make it with sparsekit.Array.rows.
%
% Options, by name and value: "context", a sparsekit.Context; of what writes also "into", a matrix
% or Array (a cell array of them) that receives the result while the leaves stay as they are.
classdef Block < handle
  properties (SetAccess = private)
    handle       % of the library; [] when closed
    arrays = {}  % a sparsekit.Array per leaf
  end

  methods
    function self = Block(view, shape, name)
      if nargin == 2 && strcmp(class(view), "swig_ref")
        self.handle = view;
        self.arrays = shape;
        return;
      end
      if nargin < 2
        shape = [];
      end
      if nargin < 3
        name = "block";
      end
      parent = sparsekit.internal.handle_of(view, "View");
      self.handle = sparsekit.internal.call("block_create", parent, shape, name);
      self.arrays = view.arrays;
    end

    % Gives the handle back; every later use fails. Couplings and scopes made of it live on.
    function close(self)
      self.handle = [];
    end

    % --- facts ---

    function text = name(self)
      text = self.ask("name");
    end
    function shape = grid_shape(self)
      shape = self.ask("grid_shape");
    end
    % Number of blocks.
    function count = numblk(self)
      count = double(self.ask("numblk"));
    end
    % Elements of one block, over all leaves; of all blocks.
    function count = numel_per_block(self)
      count = double(self.ask("numel_per_block"));
    end
    function count = element_count(self)
      count = double(self.ask("numel"));
    end
    % f64 if any leaf is f64, else f32: the dtype of norms and scores.
    function name = score_dtype(self)
      name = sparsekit.internal.dtype_name(self.ask("score_dtype"));
    end
    function count = leaf_count(self)
      count = double(self.ask("leaf_count"));
    end
    % Leaf INDEX (1, 2, ...): its block spec, its view, and the extent of its blocks.
    function block = leaf(self, index)
      handle = self.ask("leaf", index - 1);
      block = sparsekit.Block(handle, self.arrays(index));
    end
    function view = leaf_view(self, index)
      handle = self.ask("leaf_view", index - 1);
      view = sparsekit.View(self.arrays{index}, handle);
    end
    function shape = leaf_shape(self, index)
      shape = self.ask("leaf_shape", index - 1);
    end

    % --- measuring ---

    % The Lp norm of each block, P = 0, 1, 2, Inf, -Inf or any in [0.01, 1000]. Option "values":
    % arrays that are measured instead of the leaves.
    function norms = norms(self, p, varargin)
      norms = self.measure("block_norms", varargin, p);
    end
    % Smallest and largest element of each block. Option "values".
    function numbers = min(self, varargin)
      numbers = self.measure("block_min", varargin);
    end
    function numbers = max(self, varargin)
      numbers = self.measure("block_max", varargin);
    end
    % Counts elements above EPS (1e-8) in magnitude; COUNTS, int64, are those of each block.
    function [total, counts] = nnz(self, eps, varargin)
      if nargin < 2
        eps = sparsekit.internal.constant("NNZ_EPS");
      end
      options = sparsekit.internal.options(struct("context", []), varargin);
      shape = self.grid_shape();
      out = sparsekit.internal.take(sparsekit.internal.dtype_number("i64"), prod(shape));
      total = double(sparsekit.internal.call("block_nnz", ...
                                             sparsekit.internal.context(options.context), ...
                                             self.handle, self.memories(), eps, out));
      counts = sparsekit.internal.from_rows(out.value(), shape);
    end
    % FN(ELEMENTS) for each block, a column of doubles: leaf by leaf, row after row. It gives a
    % number, or [] to stop, which raises sparsekit:cancelled. An error in it comes out of the call.
    % Calls that it makes need a sparsekit.Context of their own.
    function numbers = reduce(self, fn, varargin)
      callback = sparsekit.internal.callback(fn);
      numbers = self.measure("block_reduce", varargin, callback);
    end

    % --- writing ---

    % Zeroes the blocks whose mask (logical or uint8) is 1.
    function result = apply_mask(self, mask, varargin)
      result = sparsekit.internal.write("block_apply_mask", self, write_options(varargin), ...
                                        self.grid(mask));
    end
    % Zeroes the blocks whose mask is 0.
    function result = apply_keep_mask(self, mask, varargin)
      result = sparsekit.internal.write("block_apply_keep_mask", self, write_options(varargin), ...
                                        self.grid(mask));
    end
    % Scales each block; 0 zeroes it whatever it held.
    function result = apply_multiplier(self, multiplier, varargin)
      result = sparsekit.internal.write("block_apply_multiplier", self, ...
                                        write_options(varargin), self.grid(multiplier));
    end
    % Zeroes the blocks whose Euclidean norm is below their threshold. Option "values": arrays, one
    % per leaf, whose norms decide.
    function [result, report] = hard_threshold(self, thresholds, varargin)
      defaults = struct("values", [], "into", [], "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      [result, report] = sparsekit.internal.write("block_hard_threshold", self, options, ...
                                                  self.grid(thresholds), ...
                                                  sparsekit.internal.arrays(options.values));
    end
    % Group soft thresholding: w becomes w max(0, 1 - t / ||w||). Options: "conditioners", arrays,
    % one per leaf, of h > 0 for the metric diag(h); "eps", "atol", "max_iter"; "scale", true
    % multiplies thresholds by sqrt(numel_per_block).
    function [result, report] = soft_threshold(self, thresholds, varargin)
      [options, arguments] = sparsekit.internal.soft_options(varargin);
      [result, report] = sparsekit.internal.write("block_soft_threshold", self, options, ...
                                                  self.grid(thresholds), arguments{:});
    end
    % Copies SOURCE, an array (a cell array of them) laid out as the leaves, into the leaves.
    function result = set_data(self, source, varargin)
      options = sparsekit.internal.options(struct("context", []), varargin);
      sparsekit.internal.call("block_set_data", sparsekit.internal.context(options.context), ...
                              self.handle, self.memories(), sparsekit.internal.arrays(source));
      result = sparsekit.internal.values_of(self.arrays);
    end

    % --- rearranging ---

    % MASK repeated over the elements: a uint8 matrix of each leaf's shape, in a cell array.
    function masks = masks(self, mask, varargin)
      masks = self.spread("block_get_masks", mask, sparsekit.internal.dtype_number("u8"), varargin);
    end
    % VALUES, one per block, repeated over the elements: a matrix per leaf, in a cell array.
    function elements = broadcast(self, values, varargin)
      dtype = sparsekit.internal.dtype_of(values);
      elements = self.spread("block_broadcast_block_to_element", values, dtype, varargin);
    end
    % The blocks gathered: an array (grid..., numel_per_block); f16 and bf16 as uint16.
    function blocks = merged(self, varargin)
      options = sparsekit.internal.options(struct("context", []), varargin);
      dtypes = unique(cellfun(@(array) array.memory.dtype(), self.arrays));
      if numel(dtypes) > 1
        dtypes = self.ask("score_dtype");
      end
      out = sparsekit.internal.take(dtypes, self.element_count());
      sparsekit.internal.call("block_block_view_merged", ...
                              sparsekit.internal.context(options.context), self.handle, ...
                              self.memories(), out);
      shape = [self.grid_shape(), self.numel_per_block()];
      blocks = sparsekit.internal.from_rows(out.value(), shape);
    end
    % The blocks as a view of the leaf's array: (B1, b1, B2, b2, ...), with REORDER
    % (B1, B2, ..., b1, b2, ...). A coupling has none.
    function view = block_view(self, reorder)
      handle = self.ask("block_view", double(reorder));
      view = sparsekit.View(self.arrays{1}, handle);
    end
    % Views of an array of the grid that lies row after row: in shape (B1, 1, B2, 1, ...), which
    % broadcasts against block_view; and in the grid's shape. DTYPE: the score dtype if not given.
    function view = broadcast_fake(self, dtype)
      if nargin < 2
        dtype = self.score_dtype();
      end
      view = self.of_grid("broadcast_fake", dtype);
    end
    function view = expand_block_tensor(self, dtype)
      if nargin < 2
        dtype = self.score_dtype();
      end
      view = self.of_grid("expand_block_tensor", dtype);
    end
  end

  methods (Static)
    function block = couple(members, orders, name)
      if nargin < 2
        orders = [];
      end
      if nargin < 3
        name = "coupling";
      end
      [handle, arrays] = sparsekit.internal.couple("Block", members, orders, name);
      block = sparsekit.Block(handle, arrays);
    end
  end

  methods (Access = private)
    function varargout = ask(self, what, varargin)
      [varargout{1:nargout}] = sparsekit.internal.call(["block_" what], self.handle, varargin{:});
    end
    function list = memories(self)
      list = sparsekit.internal.arrays(self.arrays);
    end
    function argument = grid(self, x)
      argument = sparsekit.internal.grid(x, self.grid_shape());
    end
    % Numbers per block that a function of the leaves gives.
    function numbers = measure(self, name, pairs, varargin)
      defaults = struct("values", {self.arrays}, "context", []);
      options = sparsekit.internal.options(defaults, pairs);
      shape = self.grid_shape();
      out = sparsekit.internal.take(self.ask("score_dtype"), prod(shape));
      sparsekit.internal.call(name, sparsekit.internal.context(options.context), self.handle, ...
                              sparsekit.internal.arrays(options.values), varargin{:}, out);
      numbers = sparsekit.internal.from_rows(out.value(), shape);
    end
    % Matrices of the leaves' shapes that a function of the grid gives.
    function elements = spread(self, name, values, dtype, pairs)
      options = sparsekit.internal.options(struct("context", []), pairs);
      shapes = sparsekit.internal.leaf_shapes(self);
      out = sparsekit.internal.take_each(dtype, shapes);
      sparsekit.internal.call(name, sparsekit.internal.context(options.context), self.handle, ...
                              self.grid(values), out);
      elements = sparsekit.internal.from_each(out, shapes);
    end
    function view = of_grid(self, name, dtype)
      handle = self.ask(name, sparsekit.internal.dtype_number(dtype));
      empty = sparsekit.Array(uint8(zeros(0, 1)));
      view = sparsekit.View(empty, handle);
    end
  end
end

function options = write_options(pairs)
  options = sparsekit.internal.options(struct("into", [], "context", []), pairs);
end
