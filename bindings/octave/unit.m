% SPDX-License-Identifier: Apache-2.0
%
% What the conformance cases cannot say: how Octave's values, shapes, functions and errors behave.
% Expected results are worked out by Octave itself, or by hand.
1;

% --- values and memory ---

function test_a_variable_keeps_its_value()
  w = magic(4);
  view = sparsekit.View(w);
  pruned = view.prune_nm(2, 1, 2);
  assert(w, magic(4));
  assert(pruned, [16 0 0 13; 0 11 10 0; 9 0 0 12; 0 14 15 0]);
  block = sparsekit.Block(view);
  block.apply_multiplier(zeros(4));
  assert(pruned, [16 0 0 13; 0 11 10 0; 9 0 0 12; 0 14 15 0]);
end

function test_executors()
  assert(sparsekit.executor_available("serial"));
  try
    sparsekit.executor_available("gpu");
    error("was not refused");
  catch err
    assert(err.identifier, "sparsekit:invalid_argument");
  end
end

function test_operations_follow_each_other_in_the_views_array()
  view = sparsekit.View([4 3 2 1]);
  block = sparsekit.Block(view);
  block.apply_mask(logical([1 0 0 0]));
  result = block.soft_threshold(1);
  assert(result, [0 2 1 0], 1e-12);
  array = view.array();
  assert(array.value, result);
end

function test_nothing_is_copied_but_what_is_shared()
  array = sparsekit.Array(rand(100));
  before = array.address();
  view = sparsekit.View(array);
  view.prune_unstructured(0.5);
  assert(array.address(), before);
  shared = array.value;
  view.prune_unstructured(0.75);
  assert(array.address() != before);
  assert(nnz(shared), 5000);
  assert(nnz(array.value), 2500);
end

function test_arrays_are_shared_by_views()
  array = sparsekit.Array(ones(4, 6));
  left = sparsekit.View(array, [4 3], [1 4], 0);
  right = sparsekit.View(array, [4 3], [1 4], 12);
  left.soft_threshold_blocks([1 1], 5);
  assert(array.value, [zeros(4, 3), ones(4, 3)]);
  half = sparsekit.Block.couple({sparsekit.Block(left, [4 3]), sparsekit.Block(right, [4 3])});
  assert(half.norms(2), sqrt(12), 1e-15);
  written = half.apply_mask(true);
  assert(written, {zeros(4, 6), zeros(4, 6)});
end

function test_matrices_that_are_equal_are_two_arrays()
  same = ones(2, 3);
  a = sparsekit.Block(sparsekit.View(same), [1 3]);
  b = sparsekit.Block(sparsekit.View(same), [1 3]);
  pair = sparsekit.Block.couple({a, b});
  result = pair.apply_mask([1; 0] == 1);
  assert(result, {[0 0 0; 1 1 1], [0 0 0; 1 1 1]});
end

function test_into_leaves_the_views_array_alone()
  w = [1 -2 3 -4];
  view = sparsekit.View(w);
  block = sparsekit.Block(view);
  assert(block.apply_mask(logical([1 1 0 0]), "into", [9 9 9 9]), [0 0 3 -4]);
  target = sparsekit.Array([9 9 9 9]);
  block.apply_mask(logical([0 0 1 1]), "into", target);
  assert(target.value, [1 -2 0 0]);
  array = view.array();
  assert(array.value, w);
end

function test_arrays_keep_class_and_size()
  for class_name = {"single", "double", "uint8", "int64"}
    x = cast(reshape(1:24, 2, 3, 4), class_name{1});
    array = sparsekit.Array(x);
    assert(array.value, x);
    assert(class(array.value), class_name{1});
    array.value = x + 1;
    assert(array.value, x + 1);
  end
  assert(sparsekit.Array([true false]).value, uint8([1 0]));
  array.value(2, 3, 4) = 7;
  assert(array.value(:, 3, 4), int64([23 + 1; 7]));
  by_rows = sparsekit.Array.rows(uint8([1 2 3; 4 5 6]));
  assert(by_rows.value, uint8([1 2 3; 4 5 6]));
  by_rows.value = uint8([6 5; 4 3; 2 1]);
  assert(by_rows.value, uint8([6 5; 4 3; 2 1]));
end

function test_sixteen_bit_words()
  half = uint16([0x3C00 0xC000 0x4200 0xC400]);    % 1 -2 3 -4
  view = sparsekit.View(sparsekit.Array(half, "f16"));
  assert(view.dtype(), "f16");
  assert(sparsekit.Block(view, [1 4]).norms(1), single(10));
  assert(view.prune_nm(2, 2, 4), uint16([0 0 0x4200 0xC400]));
  brain = uint16([0x3F80 0xC000 0x4040 0xC080]);    % 1 -2 3 -4
  view = sparsekit.View(sparsekit.Array(brain, "bf16"));
  assert(sparsekit.Block(view, [1 4]).max(), single(3));
  assert(view.prune_nm(2, 2, 4, "into", zeros(1, 4, "uint16")), uint16([0 0 0x4040 0xC080]));
end

% --- shapes ---

function test_a_matrix_is_a_column_major_view()
  view = sparsekit.View(zeros(3, 5, 2));
  assert(view.format(), "(3,5,2):(1,3,15)");
  assert(view.shape(), [3 5 2]);
  assert(view.stride(), [1 3 15]);
  assert(view.linear_offset([2 3 2]), sub2ind([3 5 2], 2, 3, 2) - 1);
  assert(sparsekit.View(zeros(3, 4), [2 4], [1 3], 1).format(), "(2,4):(1,3)+1");
  assert(sparsekit.View(zeros(3, 4), "(2,4)").format(), "(2,4):(4,1)");
end

function test_dimensions_count_from_one()
  w = [1 2; 3 4; 5 6; 7 8];
  assert(sparsekit.prune_nm(w, 1, 1, 2), [0 0; 3 4; 0 0; 7 8]);
  assert(sparsekit.prune_nm(w, 2, 1, 2), [0 2; 0 4; 0 6; 0 8]);
  assert(sparsekit.prune_nm(w, -1, 1, 2), [0 2; 0 4; 0 6; 0 8]);
  assert(sparsekit.prune_nm(w, -2, 1, 2), [0 0; 3 4; 0 0; 7 8]);
  fails("invalid_argument", @() sparsekit.prune_nm(w, 0, 1, 2));
end

function test_grids_are_matrices()
  w = rand(4, 6);
  block = sparsekit.Block(sparsekit.View(w), [2 2]);
  expected = sqrt(squeeze(sum(sum(reshape(w, 2, 2, 2, 3) .^ 2, 1), 3)));
  assert(block.norms(2), expected, 1e-14);
  mask = logical([1 0 0; 0 0 1]);
  masked = w .* kron(!mask, ones(2));
  assert(block.apply_mask(mask), masked);
  assert(block.masks(mask), {uint8(kron(mask, ones(2)))});
  assert(block.broadcast([1 2 3; 4 5 6]), {kron([1 2 3; 4 5 6], ones(2))});
  [total, counts] = block.nnz();
  assert(total, 16);
  assert(counts, int64([0 4 4; 4 4 0]));
  assert(block.min(), [0 min(min(w(1:2, 3:4))) min(min(w(1:2, 5:6)));
                       min(min(w(3:4, 1:2))) min(min(w(3:4, 3:4))) 0]);
  assert(squeeze(block.merged()(1, 2, :)), reshape(w(1:2, 3:4)', 4, 1));
  fails("shape_mismatch", @() block.apply_mask(mask'));
  fails("shape_mismatch", @() block.apply_mask(true(2, 2)));
end

function test_grids_of_three_dimensions()
  w = rand(2, 3, 4);
  block = sparsekit.Block(sparsekit.View(w), [1 3 1]);
  assert(block.grid_shape(), [2 1 4]);
  assert(block.norms(1), sum(w, 2), 1e-14);
  assert(block.apply_multiplier(2 * ones(2, 1, 4)), 2 * w);
end

function test_scores_of_scopes()
  w = [5 1 4 2; 3 8 6 7];
  scope = sparsekit.Scope(sparsekit.Block(sparsekit.View(w)), [1 2]);
  assert(scope.grid_shape(), [2 2]);
  assert(scope.norms(2), reshape([5 3 4 6 1 8 2 7], 2, 2, 2));
  assert(scope.kth_largest(1), [5 4; 8 7]);
  assert(scope.kth_largest([1 2; 2 1]), [5 2; 3 7]);
  assert(scope.kth_mid(1), [3 3; 5.5 6.5]);
  assert(scope.masks(1), {uint8([1 0 1 0; 0 1 0 1])});
  scores = cat(3, [0 1; 0 1], [1 0; 1 0]);
  assert(scope.masks(1, "scores", scores), {uint8([0 1 1 0; 0 1 1 0])});
  assert(scope.scope_to_block([1 2; 3 4]), {[1 1 2 2; 3 3 4 4]});
  assert(scope.block_to_scope(w), reshape([5 3 4 6 1 8 2 7], 2, 2, 2));
  [result, report] = scope.keep_top([2 1; 0 2]);
  assert(result, [5 1 4 0; 0 0 6 7]);
  assert([report.requested, report.achieved], [5 5]);
end

function test_orders_permute_grids()
  a = sparsekit.Block(sparsekit.View([3 4; 6 8; 0 0]), [1 2]);      % a neuron per row
  b = sparsekit.Block(sparsekit.View([4 8 0; 3 6 1]), [2 1]);       % a neuron per column
  neurons = sparsekit.Block.couple({a, b}, [1 2; 2 1]);
  assert(neurons.norms(2), sqrt([50; 200; 1]), 1e-14);
  w = rand(2, 3, 4);
  as_it_is = sparsekit.Block(sparsekit.View(w));
  turned = sparsekit.Block(sparsekit.View(permute(w, [3 1 2])));    % (4, 2, 3)
  pairs = sparsekit.Block.couple({as_it_is, turned}, [1 2 3; 2 3 1]);
  assert(pairs.norms(1), 2 * w, 1e-14);
  fails("coupling", @() sparsekit.Block.couple({a, b}));
end

% --- functions ---

function test_an_error_of_a_function_comes_out()
  block = sparsekit.Block(sparsekit.View([1 2 3]));
  try
    block.reduce(@(elements) error("unit:mine", "element %d", elements));
    error("unit:none", "nothing was thrown");
  catch err
    assert(err.identifier, "unit:mine");
    assert(err.message, "element 1");
  end
  fails("cancelled", @() block.reduce(@(elements) []));
end

function test_functions_may_call_the_library()
  block = sparsekit.Block(sparsekit.View([3 4; 6 8]), [1 2]);
  other = sparsekit.Context("executor", "serial");
  norms = block.reduce(@(elements) norm_by_another_block(elements, other));
  assert(norms, [5; 10], 1e-12);
end

function result = norm_by_another_block(elements, context)
  fails("shape_mismatch", @() sparsekit.Block(sparsekit.View(elements), [3 3]));
  other = sparsekit.Block(sparsekit.View(elements), [2 1]);
  result = other.norms(2, "context", context);
end

function test_arrays_in_use_are_safe()
  array = sparsekit.Array([1 2 3 4]);
  block = sparsekit.Block(sparsekit.View(array));
  fails("invalid_argument", @() block.reduce(@(element) assign(array, [5 6 7 8])));
  assert(array.value, [1 2 3 4]);
  weights = sparsekit.Array([1 2 3 4]);
  mask = sparsekit.Array.rows(ones(1, 4, "uint8"));
  global shown
  function_of = @(layer, rate, requested) show_and_prune(layer, requested, weights, mask);
  masking = sparsekit.Masking(sparsekit.Schedule.linear(0.5, 10), "prune", "callback", ...
                              "prune_fn", function_of);
  masking.add("a", sparsekit.View(weights), "mask", mask);
  masking.initialise(0, "lottery_ticket");
  report = masking.update();
  assert(report.removed, 2);
  assert(weights.value, [0 2 3 0]);
  assert(shown, [1 2 3 4]);    % the weights as they were then
  wrong = @(layer, rate, requested) assign(mask, uint8([1 1]));
  other = sparsekit.Masking(sparsekit.Schedule.linear(0.5, 10), "prune", "callback", ...
                            "prune_fn", wrong);
  other.add("a", sparsekit.View(weights), "mask", mask);
  other.initialise(0, "lottery_ticket");
  fails("shape_mismatch", @() other.update());
end

function show_and_prune(layer, requested, weights, mask)
  global shown
  shown = weights.value;
  assert([layer, requested], [1 2]);
  mask.value = uint8([0 1 1 0]);
end

function number = assign(array, value)
  array.value = value;
  number = 0;
end

function test_progress_cancels()
  block = sparsekit.Block(sparsekit.View(ones(512)), [1 8]);
  stop = sparsekit.Context("progress", @(done, total) true);
  fails("cancelled", @() block.apply_multiplier(2 * ones(512, 64), "context", stop));
  global calls
  calls = 0;
  go_on = sparsekit.Context("progress", @count_call, "threads", 1, "executor", "serial");
  assert(block.apply_multiplier(2 * ones(512, 64), "context", go_on), 2 * ones(512));
  assert(calls > 0);
  assert(go_on.threads(), 1);
  assert(go_on.executor(), "serial");
end

function stop = count_call(done, total)
  global calls
  ++calls;
  assert(done >= 0 && done <= total);
  stop = false;
end

% --- errors and handles ---

function test_errors_have_identifiers()
  view = sparsekit.View(zeros(4, 6));
  block = sparsekit.Block(view);
  fails("shape_mismatch", @() sparsekit.Block(view, [3 3]));
  fails("out_of_bounds", @() sparsekit.View(zeros(1, 3), [1 3], [1 -1], 0));
  fails("overlap", @() sparsekit.View(zeros(1, 3), [3 3], [0 1], 0));
  fails("unsupported_dtype", @() sparsekit.View(int8(1)));
  fails("unsupported_dtype", @() sparsekit.View(1i));
  fails("unsupported_dtype", @() sparsekit.View(uint16(1)));
  fails("unsupported_dtype", @() sparsekit.Array(single(1), "f16"));
  fails("invalid_argument", @() sparsekit.View(zeros(2), [2 2], [1 2], 0.5));
  fails("invalid_argument", @() block.norms(-1));
  fails("invalid_argument", @() sparsekit.Block(zeros(4, 6), [1 6]));
  fails("invalid_argument", @() sparsekit.Block(view, [1 6], 7));
  fails("invalid_argument", @() sparsekit.Scope(view));
  fails("invalid_argument", @() sparsekit.Scope.couple({block}));
  fails("invalid_argument", @() sparsekit.Masking(block));
  fails("invalid_argument", @() block.norms(2, "context", block));
  fails("invalid_argument", @() block.norms(2, "no_such_option", 1));
  fails("invalid_argument", @() sparsekit.Context("executor", "abacus"));
  try
    sparsekit.View(zeros(1, 3), [3 3], [0 1], 0);
  catch err
    [name, number] = sparsekit.status(err);
    assert(name, "SPK_OVERLAP");
    assert(number, 4);
  end
  [name, number] = sparsekit.status(struct("identifier", "other:kind"));
  assert(name, "");
  assert(number, -1);
end

function test_closed_handles_fail()
  view = sparsekit.View(zeros(4, 6));
  block = sparsekit.Block(view, [1 6]);
  scope = sparsekit.Scope(block);
  context = sparsekit.Context();
  view.close();
  view.close();
  assert(block.norms(2), zeros(4, 1));
  block.close();
  assert(scope.numblk_per_scope(), 4);
  fails("invalid_argument", @() block.norms(2, "context", context));
  context.close();
  fails("invalid_argument", @() context.threads());
  fails("invalid_argument", @() scope.norms(2, "context", context));
  scope.close();
  fails("invalid_argument", @() view.shape());
  fails("invalid_argument", @() view.prune_nm(2, 2, 4));
  fails("invalid_argument", @() block.norms(2));
  fails("invalid_argument", @() scope.keep_top(1));
  fails("invalid_argument", @() sparsekit.Block.couple({block}));
end

function test_what_is_forgotten_is_released()
  before = sparsekit.live_handles();
  scope = sparsekit.Scope(sparsekit.Block(sparsekit.View(zeros(4, 6)), [1 6]));
  schedule = sparsekit.Schedule.custom(@(t) 0.5);
  masking = sparsekit.Masking(schedule, "redistribute", "callback", "statistic_fn", @(layer) 1);
  masking.add("a", sparsekit.View(zeros(4, 6)));
  assert(sparsekit.live_handles() > before);
  clear schedule
  masking.initialise(1, "resume");
  masking.update();    % calls the schedule's function, which the masking keeps
  clear scope masking
  assert(sparsekit.live_handles(), before);
end

function test_octaves_own_names_are_left_alone()
  sparsekit.live_handles();
  assert(version(), OCTAVE_VERSION);
  assert(!any(strcmp({autoload().function}, "view_create")));
  assert(!any(strcmp(who("global"), "F32")));
end

% --- sparse training ---

function test_masks_are_matrices()
  w = [4 1 3; 2 6 5];
  weights = sparsekit.Array(w);
  schedule = sparsekit.Schedule.magnitude(0, 0.5, 10, 0, 10);
  masking = sparsekit.Masking(schedule);
  id = masking.add("a", sparsekit.View(weights), "mask", true(2, 3));
  assert(id, 1);
  masking.initialise(1, "resume");
  schedule.step(10);
  report = masking.update();
  assert(report.removed, 3);
  assert(masking.mask(id), uint8([1 0 0; 0 1 1]));
  assert(weights.value, [4 0 0; 0 6 5]);
  stats = masking.stats(id);
  assert([stats.numel, stats.nonzeros, stats.density], [6 3 0.5]);
  layer = masking.layer(id);
  assert(isempty(layer.gradient));
  assert(layer.mask.value, masking.mask(id));
end

function test_growth_follows_the_gradient()
  weights = sparsekit.Array(single([9 0; 8 0; 7 0]));
  gradient = single([0 1; 0 3; 0 2]);
  masking = sparsekit.Masking(sparsekit.Schedule.linear(0.3, 100), "grow", "gradient", ...
                              "dense_gradients", true);
  masking.add("a", sparsekit.View(weights), "gradient", gradient);
  masking.initialise(0, "resume");
  report = masking.update();
  assert([report.removed, report.grown], [1 1]);
  assert(masking.mask(1), uint8([1 0; 1 1; 0 0]));
  assert(weights.value, single([9 0; 8 0; 0 0]));
  layer = masking.layer(1);
  assert(layer.gradient.value, gradient);
end

function test_layers_count_from_one()
  masking = sparsekit.Masking(sparsekit.Schedule.linear(0.3, 100), "redistribute", "callback", ...
                              "statistic_fn", @(layer) layer, "grow", "random");
  assert(masking.add("conv.a", sparsekit.View(rand(4, 4))), 1);
  assert(masking.add("conv.b", sparsekit.View(rand(4, 4))), 2);
  assert(masking.find("conv.b"), 2);
  assert(masking.find("fc"), 0);
  assert(masking.layer_name(2), "conv.b");
  masking.initialise(0.5, "erdos_renyi");
  masking.update();
  assert(masking.stats(1).statistic, 1 / 3, 1e-12);
  assert(masking.stats(2).statistic, 2 / 3, 1e-12);
  assert(masking.remove_matching("conv"), 2);
  assert(masking.has_layer(1), false);
  fails("out_of_bounds", @() masking.layer(3));
end

function test_a_saved_state_goes_on()
  function_of = @() sparsekit.Masking(sparsekit.Schedule.cosine(0.5, 100), "grow", "random", ...
                                      "seed", intmax("int64"));
  start = rand(8, 8);
  first = function_of();
  first.add("a", sparsekit.View(start));
  first.initialise(0.5, "erdos_renyi");
  first.update();
  blob = first.save();
  assert(class(blob), "uint8");
  second = function_of();
  layer = first.layer(1);
  second.add("a", sparsekit.View(layer.view.array().value), "mask", layer.mask.value);
  second.restore(blob);
  first.update();
  second.update();
  assert(second.mask(1), first.mask(1));
  fails("invalid_argument", @() second.restore(blob(1:end - 1)));
end

% --- the runner ---

% FN must fail with this status.
function fails(status, fn)
  try
    fn();
  catch err
    assert(err.identifier, ["sparsekit:" status]);
    return;
  end
  error("unit:no_error", "expected sparsekit:%s", status);
end

function main()
  source = fileread(mfilename("fullpathext"));
  names = regexp(source, '(?<=\nfunction )test_\w+', "match");
  failed = 0;
  for name = names
    try
      feval(name{1});
    catch err
      ++failed;
      printf("%s: %s: %s (line %d)\n", name{1}, err.identifier, err.message, err.stack(1).line);
    end
  end
  printf("%d tests, %d failed\n", numel(names), failed);
  exit(failed > 0 || isempty(names));
end

main();
