% SPDX-License-Identifier: Apache-2.0

% sparsekit.Scope: the grid of a block cut into groups, inside which blocks compete.
%
%     scope = sparsekit.Scope(block, [1 4], "rows")     % four blocks of a row compete
%     scope = sparsekit.Scope(block)                    % all blocks compete
%     scope = sparsekit.Scope.couple({a, b}, orders, "network")
%
% SHAPE must divide the block's grid; an extent <= 0, or one that is missing at the end, spans its
% dimension. In a coupling the blocks of scope i of every member compete together; ORDERS as in
% sparsekit.Block.
%
% Blocks are ranked by Euclidean norm, largest first; equal ones by position, row after row.
% Thresholds and counts are matrices of the scopes' grid, or one number for all; scores are arrays
% (grid..., numblk_per_scope). Results, reports and options are as in sparsekit.Block.
classdef Scope < handle
  properties (SetAccess = private)
    handle       % of the library; [] when closed
    arrays = {}  % a sparsekit.Array per leaf
  end

  methods
    function self = Scope(block, shape, name)
      if nargin == 2 && strcmp(class(block), "swig_ref")
        self.handle = block;
        self.arrays = shape;
        return;
      end
      if nargin < 2
        shape = [];
      end
      if nargin < 3
        name = "scope";
      end
      parent = sparsekit.internal.handle_of(block, "Block");
      self.handle = sparsekit.internal.call("scope_create", parent, shape, name);
      self.arrays = block.arrays;
    end

    % Gives the handle back; every later use fails. Couplings made of it live on.
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
    % Number of scopes, and of blocks and elements in each.
    function count = numscope(self)
      count = double(self.ask("numscope"));
    end
    function count = numblk_per_scope(self)
      count = double(self.ask("numblk_per_scope"));
    end
    function count = numel_per_scope(self)
      count = double(self.ask("numel_per_scope"));
    end
    % f64 if any leaf is f64, else f32: the dtype of scores.
    function name = score_dtype(self)
      name = sparsekit.internal.dtype_name(self.ask("score_dtype"));
    end
    function count = member_count(self)
      count = double(self.ask("member_count"));
    end
    function count = leaf_count(self)
      count = double(self.ask("leaf_count"));
    end
    % The view of leaf INDEX (1, 2, ...).
    function view = leaf_view(self, index)
      handle = self.ask("leaf_view", index - 1);
      view = sparsekit.View(self.arrays{index}, handle);
    end
    % How many blocks member INDEX (1, 2, ...) brings to a scope.
    function count = member_numblk(self, index)
      count = double(self.ask("member_numblk", index - 1));
    end
    % How many of the blocks of a scope stay at this sparsity.
    function count = sparsity_to_nnz(self, sparsity)
      count = double(self.ask("sparsity_to_nnz", sparsity));
    end

    % --- scores ---

    % The Lp norms of the blocks, (grid..., numblk_per_scope). Option "values": arrays that are
    % measured instead of the leaves.
    function norms = norms(self, p, varargin)
      defaults = struct("values", {self.arrays}, "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      out = sparsekit.internal.take(self.ask("score_dtype"), prod(self.score_shape()));
      self.run("block_norms", options, sparsekit.internal.arrays(options.values), p, out);
      norms = sparsekit.internal.from_rows(out.value(), self.score_shape());
    end
    % VALUES, a matrix of the block's grid (for a coupling a cell array with one per member), as
    % (grid..., numblk_per_scope).
    function arranged = block_to_scope(self, values, varargin)
      options = sparsekit.internal.options(struct("context", []), varargin);
      if !iscell(values)
        values = {values};
      end
      dtype = sparsekit.internal.dtype_of(values{1});
      shapes = self.member_grids();
      for i = 1:min(numel(values), numel(shapes))
        values{i} = sparsekit.internal.grid(values{i}, shapes{i});
      end
      out = sparsekit.internal.take(dtype, prod(self.score_shape()));
      self.run("block_to_scope", options, values, out);
      arranged = sparsekit.internal.from_rows(out.value(), self.score_shape());
    end
    % VALUES, one per scope, repeated over the blocks: a matrix of the block's grid per member, in a
    % cell array.
    function values = scope_to_block(self, values, varargin)
      options = sparsekit.internal.options(struct("context", []), varargin);
      dtype = sparsekit.internal.dtype_of(values);
      shapes = self.member_grids();
      out = sparsekit.internal.take_each(dtype, shapes);
      self.run("scope_to_block", options, self.grid(values), out);
      values = sparsekit.internal.from_each(out, shapes);
    end
    % The same as block_to_scope without a copy: the view of an array of the block's grid that lies
    % row after row.
    function view = block_to_scope_view(self, reorder, dtype)
      if nargin < 3
        dtype = self.score_dtype();
      end
      handle = self.ask("block_to_scope_view", sparsekit.internal.dtype_number(dtype), ...
                        double(reorder));
      view = sparsekit.View(sparsekit.Array(uint8(zeros(0, 1))), handle);
    end
    % The K-th largest score of each scope, K from 1: one number, or one per scope. Options
    % "values", arrays whose norms are the scores, or "scores".
    function scores = kth_largest(self, k, varargin)
      defaults = struct("values", [], "scores", [], "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      scores = self.kth("kth_largest", options, k);
    end
    % A threshold between the K-th and the next score, which keeps exactly K. Option "k_weight": 1
    % is the middle.
    function scores = kth_mid(self, k, varargin)
      defaults = struct("values", [], "scores", [], "k_weight", 1, "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      scores = self.kth("kth_mid", options, k, options.k_weight);
    end

    % --- selection ---

    % Keeps exactly COUNTS blocks of each scope, those of largest norm. Options: "values", arrays
    % whose norms rank instead, or "scores"; "ties", "by_position" or "keep_all".
    function [result, report] = keep_top(self, counts, varargin)
      defaults = struct("values", [], "scores", [], "ties", "by_position", "into", [], ...
                        "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      [result, report] = sparsekit.internal.write(
        "scope_keep_top", self, options, self.counts(counts), ...
        sparsekit.internal.arrays(options.values), self.scores(options.scores), ...
        sparsekit.internal.mode("TIES", options.ties));
    end
    % The same selection as uint8 keep masks, a matrix of each leaf's shape in a cell array; nothing
    % is pruned. Option "block_mask", (grid..., numblk_per_scope), instead of scores, with COUNTS
    % [].
    function [masks, report] = masks(self, counts, varargin)
      defaults = struct("values", [], "scores", [], "block_mask", [], "ties", "by_position", ...
                        "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      if isempty(options.values) && isempty(options.scores) && isempty(options.block_mask)
        options.values = self.arrays;
      end
      shapes = sparsekit.internal.leaf_shapes(self);
      out = sparsekit.internal.take_each(sparsekit.internal.dtype_number("u8"), shapes);
      numbers = self.run("get_masks", options, sparsekit.internal.arrays(options.values), ...
                         self.scores(options.scores), self.scores(options.block_mask), ...
                         self.counts(counts), ...
                         sparsekit.internal.mode("TIES", options.ties), out);
      masks = sparsekit.internal.from_each(out, shapes);
      report = sparsekit.internal.report(numbers);
    end
    % Zeroes the blocks whose norm is below the threshold of their scope. Option "values".
    function [result, report] = hard_threshold(self, thresholds, varargin)
      defaults = struct("values", [], "into", [], "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      [result, report] = sparsekit.internal.write("scope_hard_threshold", self, options, ...
                                                  self.grid(thresholds), ...
                                                  sparsekit.internal.arrays(options.values));
    end
    % Group soft thresholding with a threshold per scope; options as in sparsekit.Block.
    function [result, report] = soft_threshold(self, thresholds, varargin)
      [options, arguments] = sparsekit.internal.soft_options(varargin);
      [result, report] = sparsekit.internal.write("scope_soft_threshold", self, options, ...
                                                  self.grid(thresholds), arguments{:});
    end
  end

  methods (Static)
    function scope = couple(members, orders, name)
      if nargin < 2
        orders = [];
      end
      if nargin < 3
        name = "coupling";
      end
      [handle, arrays] = sparsekit.internal.couple("Scope", members, orders, name);
      scope = sparsekit.Scope(handle, arrays);
    end
  end

  methods (Access = private)
    function varargout = ask(self, what, varargin)
      [varargout{1:nargout}] = sparsekit.internal.call(["scope_" what], self.handle, varargin{:});
    end
    function varargout = run(self, what, options, varargin)
      context = sparsekit.internal.context(options.context);
      [varargout{1:nargout}] = sparsekit.internal.call(["scope_" what], context, self.handle, ...
                                                       varargin{:});
    end
    function argument = grid(self, x)
      argument = sparsekit.internal.grid(x, self.grid_shape());
    end
    function argument = scores(self, x)
      argument = [];
      if !isempty(x)
        argument = sparsekit.internal.grid(x, self.score_shape());
      end
    end
    % Counts of scopes are integers for the library, not an array.
    function list = counts(self, x)
      list = sparsekit.internal.to_rows(x)';
    end
    function shape = score_shape(self)
      shape = [self.grid_shape(), self.numblk_per_scope()];
    end
    function shapes = member_grids(self)
      shapes = cell(1, self.member_count());
      for i = 1:numel(shapes)
        block = self.ask("member_block", i - 1);
        shapes{i} = sparsekit.internal.call("block_grid_shape", block);
      end
    end
    function scores = kth(self, name, options, k, varargin)
      if isempty(options.values) && isempty(options.scores)
        options.values = self.arrays;
      end
      out = sparsekit.internal.take(self.ask("score_dtype"), self.numscope());
      self.run(name, options, sparsekit.internal.arrays(options.values), ...
               self.scores(options.scores), self.counts(k), varargin{:}, out);
      scores = sparsekit.internal.from_rows(out.value(), self.grid_shape());
    end
  end
end
