% SPDX-License-Identifier: Apache-2.0

% sparsekit.Context: how a call runs. Optional everywhere.
%
%     context = sparsekit.Context("executor", "serial")
%     context = sparsekit.Context("threads", 4, "progress", @(done, total) false)
%     block.norms(2, "context", context)
%
% Executors: default, serial, tbb, openmp; one that the library was built without is refused with
% sparsekit:unavailable. THREADS: 0 is as many as the process may use. PROGRESS(DONE, TOTAL) is
% called now and then; true ends the call with sparsekit:cancelled, and every block is then either
% untouched or finished. It may not make a call with the same context.
classdef Context < handle
  properties (SetAccess = private)
    handle       % of the library; [] when closed
  end
  properties (Access = private)
    callback
  end

  methods
    function self = Context(varargin)
      defaults = struct("executor", "default", "threads", 0, "progress", []);
      options = sparsekit.internal.options(defaults, varargin);
      executor = sparsekit.internal.mode("EXECUTOR", options.executor);
      progress = options.progress;
      if !isempty(progress)
        progress = @(numbers) double(options.progress(numbers(1), numbers(2)));
      end
      self.callback = sparsekit.internal.callback(progress);
      self.handle = sparsekit.internal.call("context_create", executor, options.threads, ...
                                            self.callback);
    end

    % Gives the handle back; every later use fails.
    function close(self)
      self.handle = [];
    end

    % Number of threads that calls use.
    function count = threads(self)
      count = double(sparsekit.internal.call("context_threads", ...
                                             sparsekit.internal.context(self)));
    end
    % Name of the executor that calls use.
    function name = executor(self)
      number = double(sparsekit.internal.call("context_executor", ...
                                              sparsekit.internal.context(self)));
      names = {"serial", "tbb", "openmp"};
      name = names{number};
    end
    % Frees the scratch memory that idle calls left for reuse.
    function trim(self)
      sparsekit.internal.call("context_trim", sparsekit.internal.context(self));
    end
  end
end
