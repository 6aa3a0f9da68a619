% SPDX-License-Identifier: Apache-2.0
%
% What SparseKit does, in five steps: octave-cli --path ... example.m

randn("state", 1);

% 1. 2:4 along the rows: of every four elements the two largest stay.
w = single(mod((0:64 * 128 - 1) * 37, 101) + 1);
w = reshape(w, 64, 128);
pruned = sparsekit.prune_nm(w, 2, 2, 4);
printf("2:4: %d of %d elements are left\n", nnz(pruned), numel(w));
assert(nnz(pruned), numel(w) / 2);
assert(nnz(w), numel(w));    % w is a value of its own

% 2. Group soft thresholding: each row is a block with a threshold of its own.
view = sparsekit.View(pruned);
rows = sparsekit.Block(view, [1, 128], "rows");
norms = rows.norms(2);
thresholds = linspace(0, 2, 64)' * median(norms);
[soft, report] = rows.soft_threshold(thresholds);
printf("soft threshold: %d of %d rows survive\n", report.achieved, report.total);
assert(report.achieved, sum(norms > thresholds));

% 3. Exact selection: the rows of one matrix and the columns of the next are one neuron each. Of the
%    24 neurons 8 stay, those whose weights have the largest norm together.
first = sparsekit.View(randn(24, 10));
second = sparsekit.View(randn(5, 24));
neurons = sparsekit.Block.couple({sparsekit.Block(first, [1, 10]), ...
                                  sparsekit.Block(second, [5, 1])}, [1 2; 2 1], "neurons");
selection = sparsekit.Scope(neurons);
[kept, report] = selection.keep_top(8);
printf("neurons: %d of %d are left\n", report.achieved, report.total);
assert(any(kept{1}, 2)', any(kept{2}, 1));
assert(sum(any(kept{1}, 2)), 8);

% 4. Sparse training by RigL: the masking prunes the smallest weights and grows where the gradient
% is
%    largest, while plain gradient descent fits a line of sparse weights.
truth = zeros(1, 50);
truth([7 19 33]) = [2 -3 4];
inputs = randn(200, 50);
targets = inputs * truth';
weights = sparsekit.Array(randn(1, 50) / 10);
gradient = sparsekit.Array(zeros(1, 50));
schedule = sparsekit.Schedule.cosine(0.5, 200);
masking = sparsekit.Masking(schedule, "grow", "gradient", "dense_gradients", true, "seed", 1);
id = masking.add("line", sparsekit.View(weights), "gradient", gradient);
masking.initialise(0.2, "erdos_renyi");
for t = 1:300
  gradient.value = (inputs * weights.value' - targets)' * inputs / 200;
  weights.value = weights.value - 0.1 * gradient.value;
  if mod(t, 10) == 0
    masking.update();
  end
  masking.step();
end
printf("sparse training: %d weights, error %.1e\n", nnz(weights.value), ...
       norm(weights.value - truth));
assert(nnz(masking.mask(id)), 10);
assert(weights.value, truth, 1e-6);

% 5. What fails says why.
try
  sparsekit.Block(view, [3, 3], "tiles");
catch err
  printf("as it should be: %s: %s\n", err.identifier, err.message);
  assert(err.identifier, "sparsekit:shape_mismatch");
end
