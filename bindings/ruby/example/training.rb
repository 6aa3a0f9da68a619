# SPDX-License-Identifier: Apache-2.0

# Finds a sparse linear model by dynamic sparse training. Of 64 inputs only 6 matter; the masking
# holds 16 weights, drawn at random first, and in each update moves those of smallest magnitude to
# where the gradient is large (RigL).
require "sparsekit"

INPUTS = 64
STEPS = 400
FLOAT = 4 # bytes of one

# The model to be found: inputs 5, 15, 25, ...
TRUTH = Array.new(INPUTS) { |i| i % 10 == 5 ? 1 + i.fdiv(INPUTS) : 0.0 }

# Writes over a packed array: the same String, which the masking knows.
def write(array, numbers)
  array[0..] = numbers.pack("f*")
end

# A step of SGD by one example. Gradients are averaged, so that an update sees more than one.
def descend(weights, gradients, random)
  example = Array.new(INPUTS) { Array.new(12) { random.rand }.sum - 6 } # nearly normal
  now = weights.unpack("f*")
  failure = now.zip(TRUTH, example).sum { |w, t, x| (w - t) * x }
  write(gradients, gradients.unpack("f*").zip(example).map { |g, x| 0.9 * g + 0.1 * failure * x })
  write(weights, now.zip(example).map { |w, x| w - 0.01 * failure * x })
end

weights = "\0".b * (INPUTS * FLOAT)
gradients = "\0".b * (INPUTS * FLOAT)
mask = "\0".b * INPUTS

# A schedule of our own: half of the weights move at first, none after three quarters.
schedule = SparseKit::Schedule.custom { |t| [0.5 * (1 - t / (STEPS * 0.75)), 0].max }
masking = SparseKit::Masking.new(schedule, seed: 1, grow: :gradient, dense_gradients: true)
view = SparseKit::View.new(weights, [1, INPUTS], dtype: :f32)
masking.add("linear", view, mask: mask, gradient: gradients)
masking.initialise(0.25, mode: :erdos_renyi)

random = Random.new(1)
1.upto(STEPS) do |step|
  descend(weights, gradients, random)
  masking.update if (step % 10).zero?
  masking.step
end

found = mask.bytes.zip(TRUTH).count { |kept, truth| kept == 1 && truth != 0 }
puts "#{masking.stats.nonzeros} of #{INPUTS} weights, #{found} of the 6 that matter among them"
abort "expected 16 weights, and all 6" unless masking.stats.nonzeros == 16 && found == 6
