% SPDX-License-Identifier: Apache-2.0

% sparsekit.Masking: dynamic sparse training. Keeps layers sparse while somebody else trains them.
%
%     schedule = sparsekit.Schedule.cosine(0.3, 1000);
%     masking = sparsekit.Masking(schedule, "grow", "gradient", "dense_gradients", true);
%     weights = sparsekit.Array(single(randn(64, 128)));
%     gradient = sparsekit.Array(single(zeros(64, 128)));
%     masking.add("conv1", sparsekit.View(weights), "gradient", gradient);
%     masking.initialise(0.1, "erdos_renyi_kernel");
%     for t = 1:1000
%       gradient.value = ...;  weights.value = ...;    % backward pass, optimiser step
%       if mod(t, 100) == 0, masking.update(); end
%       masking.step();
%     end
%
% Modes are those of training.h, in lower case without their prefix:
%     "prune"         magnitude global_magnitude struct_magnitude_mean struct_magnitude_max
%                     struct_magnitude_min struct_criterion callback
%     "redistribute"  none nonzero momentum gradient callback
%     "grow"          none random gradient momentum struct_gradient_mean struct_gradient_max
%                     struct_gradient_min struct_criterion callback
% Further options: "seed" (0); "dense_gradients" (false): true leaves gradients, momentum and
% moments alone. Functions of yours, with the modes that name them; layers count from 1:
%     "prune_fn"         (layer, rate, requested): clears ones of the layer's mask
%     "grow_fn"          (layer, requested): sets zeros of it
%     "statistic_fn"     (layer): a number >= 0
%     "prune_criterion"  (weights of a kernel, a column): a number; the smallest go
%     "grow_criterion"   (gradients of a kernel, a column): a number; the largest grow
% They reach masks and weights through the Arrays that you gave. They should not hold the masking
% itself, which would then never be freed. An error in them ends the call and comes out of it.
classdef Masking < handle
  properties (SetAccess = private)
    handle       % of the library; [] when closed
  end
  properties (Access = private)
    schedule     % kept alive, for the library may call its function
    callbacks    % the same, in the order that the library takes them
    layers = {}  % a struct per id: view, mask, gradient, momentum, adam_m1, adam_m2
  end

  methods
    function self = Masking(schedule, varargin)
      defaults = struct("seed", 0, "prune", "magnitude", "redistribute", "none", "grow", "none", ...
                        "dense_gradients", false, "prune_fn", [], "prune_criterion", [], ...
                        "statistic_fn", [], "grow_fn", [], "grow_criterion", []);
      o = sparsekit.internal.options(defaults, varargin);
      functions = {o.prune_fn, o.prune_criterion, o.statistic_fn, o.grow_fn, o.grow_criterion};
      forms = {@(n) sparsekit.internal.act(o.prune_fn, n(1) + 1, n(2), n(3)), o.prune_criterion, ...
               @(n) o.statistic_fn(n + 1), ...
               @(n) sparsekit.internal.act(o.grow_fn, n(1) + 1, n(2)), o.grow_criterion};
      forms(cellfun(@isempty, functions)) = {[]};
      self.callbacks = cellfun(@sparsekit.internal.callback, forms, "UniformOutput", false);
      self.schedule = schedule;
      parent = sparsekit.internal.handle_of(schedule, "Schedule");
      modes = [sparsekit.internal.mode("PRUNE", o.prune), ...
               sparsekit.internal.mode("REDISTRIBUTE", o.redistribute), ...
               sparsekit.internal.mode("GROW", o.grow)];
      self.handle = sparsekit.internal.call("masking_create", parent, o.seed, modes(1), ...
                                            modes(2), modes(3), double(o.dense_gradients), ...
                                            self.callbacks{:});
    end

    % Gives the handle back; every later use fails.
    function close(self)
      self.handle = [];
    end

    % --- layers ---

    % Adds a layer before initialisation; NAME is unique. VIEW is that of its weights. Options, each
    % a matrix or an Array: "mask" (logical or uint8, of the view's shape; ones if not given; an
    % Array must be of sparsekit.Array.rows), "gradient", "momentum" or "adam_m1" and "adam_m2",
    % laid out as the weights. ID is 1, 2, ...
    function id = add(self, name, view, varargin)
      defaults = struct("mask", [], "gradient", [], "momentum", [], "adam_m1", [], "adam_m2", []);
      layer = sparsekit.internal.options(defaults, varargin);
      weights = sparsekit.internal.handle_of(view, "View");
      if isempty(layer.mask)
        layer.mask = true([view.shape(), 1]);
      end
      if !isa(layer.mask, "sparsekit.Array")
        layer.mask = sparsekit.Array.rows(layer.mask);
      end
      for field = {"gradient", "momentum", "adam_m1", "adam_m2"}
        boxes = sparsekit.internal.boxes(layer.(field{1}), view.arrays);
        layer.(field{1}) = [boxes{:}];
      end
      layer.view = view;
      id = double(self.ask("add", name, weights)) + 1;
      self.layers{id} = layer;
    end
    % The layer ID: a struct of its view and, as Arrays, mask, gradient, momentum, adam_m1, adam_m2;
    % those that were not given are [].
    function layer = layer(self, id)
      self.layer_name(id);
      layer = self.layers{id};
    end
    % The keep mask of layer ID, a uint8 matrix of the view's shape.
    function mask = mask(self, id)
      layer = self.layer(id);
      mask = layer.mask.value;
    end
    % Removes the layer of this name; or all whose names contain PART, and says how many.
    function remove(self, name)
      self.ask("remove", name);
    end
    function count = remove_matching(self, part)
      count = double(self.ask("remove_matching", part));
    end
    % Layers ever added.
    function count = layer_count(self)
      count = double(self.ask("layer_count"));
    end
    % The id of a layer; 0 if there is none of this name.
    function id = find(self, name)
      id = double(self.ask("find", name)) + 1;
    end
    function name = layer_name(self, id)
      name = self.ask("layer_name", id - 1);
    end
    % Whether the layer still belongs to the masking.
    function answer = has_layer(self, id)
      answer = logical(self.ask("has_layer", id - 1));
    end

    % --- training ---

    % Writes the first masks and applies them. MODE: random erdos_renyi erdos_renyi_kernel
    % struct_random struct_erdos_renyi struct_erdos_renyi_kernel resume lottery_ticket
    % lottery_ticket_dist. Options: "draw", exact or bernoulli; "counts", ones of each layer, for
    % lottery_ticket_dist; "context". The default mode leaves the first layer dense.
    function initialise(self, density, mode, varargin)
      if nargin < 3
        mode = "random";
      end
      defaults = struct("draw", "exact", "counts", [], "context", []);
      options = sparsekit.internal.options(defaults, varargin);
      [weights, masks] = self.buffers();
      sparsekit.internal.call("masking_initialise", sparsekit.internal.context(options.context), ...
                              self.handle, weights, masks, density, ...
                              sparsekit.internal.mode("INIT", mode), ...
                              sparsekit.internal.mode("DRAW", options.draw), options.counts);
    end
    % The densities that initialisation would give: a column, one per layer.
    function densities = densities(self, density, mode)
      if nargin < 3
        mode = "random";
      end
      out = sparsekit.internal.take(sparsekit.internal.dtype_number("f64"), self.layer_count());
      self.ask("densities", density, sparsekit.internal.mode("INIT", mode), out);
      densities = out.value();
    end
    % Zeroes what the masks forbid; WHAT: "weights", "momentum", "gradients", or several in a cell
    % array.
    function apply(self, what, varargin)
      numbers = cellfun(@(name) sparsekit.internal.mode("APPLY", name), cellstr(what));
      self.run("apply", varargin, sum(unique(numbers)));
    end
    % After an optimiser step: applies the masks, and moves the schedule on. Option "context".
    function step(self, varargin)
      self.run("step", varargin);
    end
    % Prunes and grows. Option "context". The report: rate, requested_removed, removed,
    % requested_grown, grown, nonzeros, residual.
    function report = update(self, varargin)
      numbers = self.run("update", varargin);
      names = {"rate", "requested_removed", "removed", "requested_grown", "grown", "nonzeros", ...
               "residual"};
      report = cell2struct(num2cell(numbers), names, 2);
    end
    % What is known of layer ID, or of all together: numel, nonzeros, zeros, density,
    % requested_density, statistic, rate, requested_removed, removed, requested_grown, grown.
    function stats = stats(self, id)
      if nargin < 2
        id = 0;
      end
      names = {"numel", "nonzeros", "zeros", "density", "requested_density", "statistic", ...
               "rate", "requested_removed", "removed", "requested_grown", "grown"};
      stats = cell2struct(num2cell(self.ask("stats", id - 1)), names, 2);
    end
    % The nonzeros that growth aims for, and what the next update adds to them.
    function count = baseline(self)
      count = double(self.ask("baseline"));
    end
    function count = adjusted_growth(self)
      count = self.ask("adjusted_growth");
    end

    % --- save and restore ---

    % The whole state but masks and weights: a column of uint8.
    function blob = save(self)
      out = sparsekit.internal.take(sparsekit.internal.dtype_number("u8"), self.ask("save_size"));
      self.ask("save", out);
      blob = out.value();
    end
    % Takes up a saved state; the masking must have the same modes and layers.
    function restore(self, blob)
      self.ask("restore", sparsekit.internal.arrays(blob));
    end
  end

  methods (Access = private)
    function varargout = ask(self, what, varargin)
      [varargout{1:nargout}] = sparsekit.internal.call(["masking_" what], self.handle, varargin{:});
    end
    % What the library is given for each layer: lists of weights, masks, gradients, ...
    function [weights, varargout] = buffers(self)
      weights = cellfun(@(layer) layer.view.arrays{1}.memory, self.layers, "UniformOutput", false);
      fields = {"mask", "gradient", "momentum", "adam_m1", "adam_m2"};
      for i = 1:nargout - 1
        varargout{i} = cellfun(@(layer) memory(layer.(fields{i})), self.layers, ...
                               "UniformOutput", false);
      end
    end
    function varargout = run(self, what, pairs, varargin)
      options = sparsekit.internal.options(struct("context", []), pairs);
      [weights, masks, gradients, momenta, m1, m2] = self.buffers();
      [varargout{1:nargout}] = sparsekit.internal.call(
        ["masking_" what], sparsekit.internal.context(options.context), self.handle, weights, ...
        masks, gradients, momenta, m1, m2, varargin{:});
    end
  end
end

% The memory of an Array; [] for [].
function memory = memory(array)
  memory = [];
  if !isempty(array)
    memory = array.memory;
  end
end
