% SPDX-License-Identifier: Apache-2.0

% [OPTIONS, ARGUMENTS] = soft_options({NAME, VALUE, ...}) gives the options of a soft threshold, and
% what the library is given of them.
function [options, arguments] = soft_options(pairs)
  defaults = struct("conditioners", [], "eps", -1, "atol", -1, "max_iter", 0, "scale", false, ...
                    "into", [], "context", []);
  options = sparsekit.internal.options(defaults, pairs);
  arguments = {sparsekit.internal.arrays(options.conditioners), options.eps, options.atol, ...
               options.max_iter, double(options.scale)};
end
