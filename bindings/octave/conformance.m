% SPDX-License-Identifier: Apache-2.0
%
% The conformance driver of Octave: octave-cli --path ... conformance.m CASES RESULTS
% See bindings/conformance/README.md. Arrays of the cases are Arrays that lie as the files do; what
% calls give as matrices is laid row after row again.
1;

% --- what a step gives ---

function text = ints(values)
  text = ["ints " strjoin(arrayfun(@(x) sprintf("%d", x), double(values(:)'), ...
                                   "UniformOutput", false), ",")];
end

function text = numbers(values)
  text = ["numbers " strjoin(arrayfun(@(x) sprintf("%.17g", x), values(:)', ...
                                      "UniformOutput", false), ",")];
end

function text = report_text(report)
  text = ints(cell2mat(struct2cell(report)));
end

function text = error_text(err)
  [name, number] = sparsekit.status(err);
  if strcmp(err.identifier, "driver:callback")
    text = "error callback";
  elseif number >= 0
    text = ["error " name " " regexprep(err.message, "[\t\n]", " ")];
  else
    text = ["error driver " regexprep(err.message, "[\t\n]", " ")];
  end
end

% --- arguments ---

% Positional arguments in a cell array, key=value ones in a struct.
function [positional, named] = parse(fields)
  positional = {};
  named = struct();
  for field = fields
    pair = regexp(field{1}, '^(\w+)=(.*)$', "tokens", "once");
    if isempty(pair)
      positional{end + 1} = field{1};
    else
      named.(pair{1}) = pair{2};
    end
  end
end

% Integers of a list, or of lists one after the other; [] if it is not given.
function list = integers(named, key)
  list = [];
  if isfield(named, key)
    list = str2double(strsplit(named.(key), {",", ";"}));
  end
end

function value = number(named, key, fallback)
  value = fallback;
  if isfield(named, key)
    value = str2double(named.(key));
  end
end

function value = text(named, key, fallback)
  value = fallback;
  if isfield(named, key)
    value = named.(key);
  end
end

% The Arrays of a list of names, in a cell array; {} if it is not given.
function list = arrays(things, named, key)
  list = {};
  if isfield(named, key)
    list = cellfun(@(name) things(name), strsplit(named.(key), ","), "UniformOutput", false);
  end
end

function array = one(things, named, key)
  array = arrays(things, named, key){1};
end

% Options of a call by name and value: those of KEYS that are given, and the context. One array goes
% without its list.
function pairs = options(things, named, keys)
  pairs = {};
  for key = keys
    given = arrays(things, named, key{1});
    if numel(given) == 1
      pairs(end + 1:end + 2) = {key{1}, given{1}};
    elseif !isempty(given)
      pairs(end + 1:end + 2) = {key{1}, given};
    end
  end
  if isfield(named, "context")
    pairs(end + 1:end + 2) = {"context", things(named.context)};
  end
end

% The same for numbers.
function pairs = numeric_options(named, keys)
  pairs = {};
  for key = keys
    if isfield(named, key{1})
      pairs(end + 1:end + 2) = {key{1}, str2double(named.(key{1}))};
    end
  end
end

% --- arrays ---

function class_name = class_of(dtype)
  classes = struct("f32", "single", "f64", "double", "f16", "uint16", "bf16", "uint16", ...
                   "u8", "uint8", "i64", "int64");
  class_name = classes.(dtype);
end

function array = new_array(elements, dtype)
  if isa(elements, "uint16")
    array = sparsekit.Array(elements, dtype);
  else
    array = sparsekit.Array(elements);
  end
end

function elements = read(path, dtype)
  file = fopen(path, "rb", "ieee-le");
  elements = fread(file, Inf, ["*" class_of(dtype)]);
  fclose(file);
end

function write(path, elements)
  file = fopen(path, "wb", "ieee-le");
  fwrite(file, elements, class(elements));
  fclose(file);
end

% Gives results their names: a matrix, or several in a cell array. DTYPE is that of 16-bit words.
function give(things, named, results, dtype)
  if !isfield(named, "out")
    return;
  end
  if !iscell(results)
    results = {results};
  end
  names = strsplit(named.out, ",");
  for i = 1:numel(names)
    elements = permute(results{i}, ndims(results{i}):-1:1)(:);
    things(names{i}) = new_array(elements, dtype);
  end
end

% --- functions that the library calls ---

function throw(varargin)
  error("driver:callback", "thrown by the driver");
end

function value = throw_value(varargin)
  throw();
  value = 0;
end

function total = add_up(elements)
  total = 0;
  for x = elements'
    total += x;
  end
end

% Turns the first COUNT elements of MASK that are FROM around.
function turn(mask, count, from)
  elements = mask.value;
  at = find(elements == from, count);
  elements(at) = 1 - from;
  mask.value = elements;
end

% --- commands ---

function result = run(state, command, p, named)
  things = state.things;
  result = "ok";
  if !isempty(p) && things.isKey(p{1})
    x = things(p{1});
  end
  with = options(things, named, {"into"});
  switch command
    case "array"
      things(p{1}) = new_array(read(fullfile(state.cases, "data", p{3}), p{2}), p{2});
    case "zeros"
      things(p{1}) = new_array(zeros(str2double(p{3}), 1, class_of(p{2})), p{2});
    case {"readonly", "address"}
      result = "text unsupported";
    case "save"
      write(fullfile(state.results, [state.name "." p{1} ".bin"]), x.value);

    case "context"
      functions = struct("cancel", @(done, total) true, "throw", @throw_value, ...
                         "count", @(done, total) false);
      progress = {};
      if isfield(named, "progress")
        progress = {"progress", functions.(named.progress)};
      end
      things(p{1}) = sparsekit.Context("executor", text(named, "executor", "default"), ...
                                       "threads", number(named, "threads", 0), progress{:});
    case "view"
      layout = p(4:end);
      if isfield(named, "shape")
        layout = {integers(named, "shape"), integers(named, "stride"), number(named, "offset", 0)};
      end
      things(p{1}) = sparsekit.View(things(p{3}), layout{:});
    case {"format", "dtype", "name", "score_dtype"}
      result = ["text " x.(command)()];
    case {"shape", "stride", "offset", "cosize", "grid_shape", "numblk", "numel_per_block", ...
          "leaf_count", "numscope", "numblk_per_scope", "numel_per_scope", "member_count", ...
          "position", "layer_count", "baseline"}
      result = ints(x.(command)());
    case "numel"
      result = ints(x.element_count());
    case "linear_offset"
      result = ints(x.linear_offset(integers(named, "index") + 1));
    case "to_param_rc"
      [row, column] = x.to_param_rc(integers(named, "index") + 1, number(named, "cols", 0));
      result = ints([row, column] - 1);
    case "view_block_view"
      view = x.block_view(integers(named, "shape"), number(named, "reorder", 0));
      result = ["text " view.format()];
    case "view_merged"
      give(things, named, x.merged(integers(named, "shape"), with{:}), x.dtype());
    case "view_broadcast"
      values = one(things, named, "values");
      give(things, named, x.broadcast(values, integers(named, "shape"), with{:}), values.dtype());
    case "view_apply_mask"
      x.apply_mask(one(things, named, "mask"), integers(named, "shape"), with{:});
    case "view_apply_keep_mask"
      x.apply_keep_mask(one(things, named, "mask"), integers(named, "shape"), with{:});
    case "view_apply_multiplier"
      x.apply_multiplier(one(things, named, "multiplier"), integers(named, "shape"), with{:});

    case "block"
      things(p{1}) = sparsekit.Block(things(p{2}), integers(named, "shape"), ...
                                     text(named, "name", "block"));
    case "couple"
      things(p{1}) = sparsekit.Block.couple(arrays(things, named, "members"), ...
                                            integers(named, "orders") + 1, ...
                                            text(named, "name", "coupling"));
    case "scope"
      things(p{1}) = sparsekit.Scope(things(p{2}), integers(named, "shape"), ...
                                     text(named, "name", "scope"));
    case "couple_scopes"
      things(p{1}) = sparsekit.Scope.couple(arrays(things, named, "members"), ...
                                            integers(named, "orders") + 1, ...
                                            text(named, "name", "coupling"));
    case "close"
      x.close();
    case "live"
      result = ints(sparsekit.live_handles());
    case "leaf"
      result = ints(x.leaf_shape(str2double(p{2}) + 1));
    case "sparsity_to_nnz"
      result = ints(x.sparsity_to_nnz(str2double(p{2})));

    case {"norms", "scope_norms"}
      with = options(things, named, {"values"});
      give(things, named, x.norms(number(named, "p", 2), with{:}), []);
    case {"min", "max"}
      with = options(things, named, {"values"});
      give(things, named, x.(command)(with{:}), []);
    case "nnz"
      [total, counts] = x.nnz(number(named, "eps", 1e-8), with{:});
      give(things, named, counts, []);
      result = ints(total);
    case "reduce"
      functions = struct("sum", @add_up, "throw", @throw_value, "stop", @(elements) []);
      with = options(things, named, {"values"});
      give(things, named, x.reduce(functions.(named.fn), with{:}), []);
    case {"apply_mask", "apply_keep_mask"}
      x.(command)(one(things, named, "mask"), with{:});
    case "apply_multiplier"
      x.apply_multiplier(one(things, named, "multiplier"), with{:});
    case "hard_threshold"
      with = options(things, named, {"into", "values"});
      [~, report] = x.hard_threshold(one(things, named, "thresholds"), with{:});
      result = report_text(report);
    case "soft_threshold"
      with = [options(things, named, {"into", "conditioners"}), ...
              numeric_options(named, {"eps", "atol", "max_iter", "scale"})];
      [~, report] = x.soft_threshold(one(things, named, "thresholds"), with{:});
      result = report_text(report);
    case "set_data"
      x.set_data(arrays(things, named, "source"), with{:});
    case "block_masks"
      give(things, named, x.masks(one(things, named, "mask"), with{:}), []);
    case "block_view"
      view = x.block_view(number(named, "reorder", 0));
      result = ["text " view.format()];
    case {"broadcast_fake", "expand_block_tensor"}
      view = x.(command)("f32");
      result = ["text " view.format()];
    case "merged"
      give(things, named, x.merged(with{:}), x.arrays{1}.dtype());
    case "broadcast"
      values = one(things, named, "values");
      give(things, named, x.broadcast(values, with{:}), values.dtype());

    case "block_to_scope"
      values = arrays(things, named, "values");
      give(things, named, x.block_to_scope(values, with{:}), values{1}.dtype());
    case "scope_to_block"
      values = one(things, named, "values");
      give(things, named, x.scope_to_block(values, with{:}), values.dtype());
    case "block_to_scope_view"
      view = x.block_to_scope_view(number(named, "reorder", 0), "f32");
      result = ["text " view.format()];
    case {"kth_largest", "kth_mid"}
      with = [options(things, named, {"values", "scores"}), numeric_options(named, {"k_weight"})];
      give(things, named, x.(command)(integers(named, "k"), with{:}), []);
    case "keep_top"
      with = [options(things, named, {"into", "values", "scores"}), ...
              {"ties", text(named, "ties", "by_position")}];
      [~, report] = x.keep_top(integers(named, "counts"), with{:});
      result = report_text(report);
    case "masks"
      with = [options(things, named, {"values", "scores", "block_mask"}), ...
              {"ties", text(named, "ties", "by_position")}];
      [masks, report] = x.masks(integers(named, "counts"), with{:});
      give(things, named, masks, []);
      result = report_text(report);

    case "prune_nm"
      axis = number(named, "axis", 0);
      [~, report] = x.prune_nm(axis + (axis >= 0), number(named, "n", 0), number(named, "m", 0), ...
                               with{:});
      result = report_text(report);
    case "prune_unstructured"
      [~, report] = x.prune_unstructured(number(named, "sparsity", 0), with{:});
      result = report_text(report);
    case "soft_threshold_blocks"
      [~, report] = x.soft_threshold_blocks(integers(named, "shape"), ...
                                            number(named, "threshold", 0), with{:});
      result = report_text(report);

    case "schedule"
      things(p{1}) = new_schedule(p{2}, named);
    case "schedule_step"
      t = num2cell(integers(named, "t"));
      x.step(t{:});
    case "rate"
      current = num2cell(integers(named, "current"));
      result = numbers(x.rate(current{:}));
    case "cumulative_sparsity"
      result = numbers(x.cumulative_sparsity(number(named, "t", 0)));

    case "masking"
      things(p{1}) = new_masking(things(p{2}), state.layers, named);
    case "add"
      given = rmfield(named, intersect(fieldnames(named), {"context"}));
      fields = fieldnames(given)';
      buffers = cellfun(@(name) things(given.(name)), fields, "UniformOutput", false);
      id = x.add(p{2}, things(p{3}), [fields; buffers]{:});
      state.layers(id) = things(named.mask);
      result = ints(id - 1);
    case "remove"
      x.remove(p{2});
    case "remove_matching"
      result = ints(x.remove_matching(p{2}));
    case "has_layer"
      result = ints(x.has_layer(str2double(p{2}) + 1));
    case "layer_name"
      result = ["text " x.layer_name(str2double(p{2}) + 1)];
    case "find"
      result = ints(x.find(p{2}) - 1);
    case "initialise"
      x.initialise(number(named, "density", 0), text(named, "mode", "random"), ...
                   "draw", text(named, "draw", "exact"), ...
                   "counts", integers(named, "counts"), with{:});
    case "densities"
      result = numbers(x.densities(number(named, "density", 0), text(named, "mode", "random")));
    case "apply"
      x.apply(strsplit(named.what, ","), with{:});
    case "step"
      x.step(with{:});
    case "update"
      result = numbers(cell2mat(struct2cell(x.update(with{:}))));
    case "stats"
      layer = num2cell(integers(named, "layer") + 1);
      result = numbers(cell2mat(struct2cell(x.stats(layer{:}))));
    case "adjusted_growth"
      result = numbers(x.adjusted_growth());
    case "state_save"
      things(p{2}) = sparsekit.Array(x.save());
    case "state_restore"
      x.restore(things(p{2}));
    otherwise
      error("driver:command", "there is no command %s", command);
  end
end

function schedule = new_schedule(kind, named)
  switch kind
    case "cosine"
      schedule = sparsekit.Schedule.cosine(number(named, "prune_rate", 0.3), ...
                                           number(named, "t_max", 1000), ...
                                           number(named, "eta_min", 0), ...
                                           number(named, "last_epoch", -1));
    case "linear"
      schedule = sparsekit.Schedule.linear(number(named, "prune_rate", 0.3), ...
                                           number(named, "t_max", 1000));
    case "magnitude"
      schedule = sparsekit.Schedule.magnitude(number(named, "initial", 0), ...
                                              number(named, "final", 0), ...
                                              number(named, "t_max", 0), ...
                                              number(named, "t_start", 0), ...
                                              number(named, "interval", 1));
    case "custom"
      functions = struct("half", @(t) 1 / (2 + t), "throw", @throw_value);
      schedule = sparsekit.Schedule.custom(functions.(named.fn));
  end
end

% LAYERS maps ids to the masks that the functions change.
function masking = new_masking(schedule, layers, named)
  functions = {"prune_fn", @(layer, rate, requested) turn(layers(layer), requested, 1);
               "prune_criterion", @add_up;
               "statistic_fn", @(layer) layer;
               "grow_fn", @(layer, requested) turn(layers(layer), requested, 0);
               "grow_criterion", @add_up};
  wanted = [strcmp(text(named, "prune", ""), "callback"), ...
            strcmp(text(named, "prune", ""), "struct_criterion"), ...
            strcmp(text(named, "redistribute", ""), "callback"), ...
            strcmp(text(named, "grow", ""), "callback"), ...
            strcmp(text(named, "grow", ""), "struct_criterion")];
  if strcmp(text(named, "fn", ""), "throw")
    functions(:, 2) = {@throw_value};
  end
  chosen = functions(wanted, :)';
  masking = sparsekit.Masking(schedule, "seed", number(named, "seed", 0), ...
                              "prune", text(named, "prune", "magnitude"), ...
                              "redistribute", text(named, "redistribute", "none"), ...
                              "grow", text(named, "grow", "none"), ...
                              "dense_gradients", number(named, "dense_gradients", 0), chosen{:});
end

% --- cases ---

function state = new_state(cases, results, name)
  state = struct("cases", cases, "results", results, "name", name, ...
                 "things", containers.Map(), ...
                 "layers", containers.Map("KeyType", "double", "ValueType", "any"));
end

% A name may be used again: what it stood for stays open until the end of the case.
function close_all(opened)
  for i = 1:numel(opened)
    opened{i}.close();
  end
end

function main(cases, results)
  lines = strsplit(strtrim(fileread(fullfile(cases, "cases.tsv"))), "\n");
  file = fopen(fullfile(results, "results.tsv"), "w");
  state = new_state(cases, results, "");
  opened = {};
  for line = lines
    fields = strsplit(line{1}, "\t");
    if !strcmp(fields{1}, state.name)
      close_all(opened);
      state = new_state(cases, results, fields{1});
      opened = {};
      step = 0;
    end
    ++step;
    [positional, named] = parse(fields(3:end));
    try
      result = run(state, fields{2}, positional, named);
      if any(strcmp(fields{2}, {"context", "view", "block", "couple", "scope", "couple_scopes", ...
                                "schedule", "masking"}))
        opened{end + 1} = state.things(positional{1});
      end
    catch err
      result = error_text(err);
    end
    fprintf(file, "%s\t%d\t%s\n", state.name, step, result);
  end
  fclose(file);
end

main(argv(){end - 1}, argv(){end});
