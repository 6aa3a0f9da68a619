% SPDX-License-Identifier: Apache-2.0

% sparsekit.Schedule: a prune rate that changes with its position, a number of steps.
%
%     sparsekit.Schedule.cosine(prune_rate, t_max)            % and eta_min = 0, last_epoch = -1
%     sparsekit.Schedule.linear(prune_rate, t_max)
%     sparsekit.Schedule.magnitude(initial, final, t_max, t_start, interval)
%     sparsekit.Schedule.custom(@(t) 1 / (2 + t))             % a rate in [0, 1]; [] stops
classdef Schedule < handle
  properties (SetAccess = private)
    handle       % of the library; [] when closed
  end
  properties (Access = private)
    callback
  end

  methods (Static)
    % eta_min + (prune_rate - eta_min) (1 + cos(pi t / t_max)) / 2, and eta_min from t_max on.
    function schedule = cosine(prune_rate, t_max, eta_min, last_epoch)
      if nargin < 3
        eta_min = 0;
      end
      if nargin < 4
        last_epoch = -1;
      end
      handle = sparsekit.internal.call("schedule_create_cosine", prune_rate, t_max, eta_min, ...
                                       last_epoch);
      schedule = sparsekit.Schedule(handle);
    end
    % prune_rate (1 - t / t_max), never below 0.
    function schedule = linear(prune_rate, t_max)
      handle = sparsekit.internal.call("schedule_create_linear", prune_rate, t_max);
      schedule = sparsekit.Schedule(handle);
    end
    % Gradual magnitude pruning: from sparsity INITIAL at t_start to FINAL at t_max, an update every
    % INTERVAL steps.
    function schedule = magnitude(initial, final, t_max, t_start, interval)
      handle = sparsekit.internal.call("schedule_create_magnitude", initial, final, t_max, ...
                                       t_start, interval);
      schedule = sparsekit.Schedule(handle);
    end
    % A function of the position.
    function schedule = custom(fn)
      callback = sparsekit.internal.callback(fn);
      handle = sparsekit.internal.call("schedule_create_custom", callback);
      schedule = sparsekit.Schedule(handle, callback);
    end
  end

  methods
    % For the functions above: takes a handle, and the callback that it calls.
    function self = Schedule(handle, callback)
      self.handle = handle;
      if nargin > 1
        self.callback = callback;
      end
    end

    % Gives the handle back; every later use fails. A masking that has it lives on.
    function close(self)
      self.handle = [];
    end

    % Moves on by one, or to position T.
    function step(self, t)
      if nargin < 2
        sparsekit.internal.call("schedule_step", self.handle);
      else
        sparsekit.internal.call("schedule_step_to", self.handle, t);
      end
    end
    function t = position(self)
      t = double(sparsekit.internal.call("schedule_position", self.handle));
    end
    % The rate at the position; of a magnitude schedule also from a sparsity CURRENT.
    function rate = rate(self, current)
      if nargin < 2
        rate = sparsekit.internal.call("schedule_rate", self.handle);
      else
        rate = sparsekit.internal.call("schedule_rate_from", self.handle, current);
      end
    end
    % The sparsity that a magnitude schedule has reached at T.
    function sparsity = cumulative_sparsity(self, t)
      sparsity = sparsekit.internal.call("schedule_cumulative_sparsity", self.handle, t);
    end
  end
end
