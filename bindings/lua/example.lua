--- Three ways to make weights sparse. Ends with an error if a count is not what it must be.
--
-- SPDX-License-Identifier: Apache-2.0

local sparsekit = require("sparsekit")

-- Numbers in (-1, 1), the same on every machine.
local state = 1
local function random()
  state = state * 16807 % 2147483647
  return 2 * state / 2147483647 - 1
end

local function random_array(n)
  local values = sparsekit.array("f32", n)
  for i = 1, n do
    values[i] = random()
  end
  return values
end

local function nonzeros(values)
  local count = 0
  for i = 1, #values do
    count = count + (values[i] ~= 0 and 1 or 0)
  end
  return count
end

-- Of every four weights in a row, keeps the two of largest magnitude.
local function prune_2_of_4()
  local weights = random_array(64 * 128)
  sparsekit.View(weights, { 64, 128 }):prune_nm(1, 2, 4)
  print(("2:4: %d of %d weights are left"):format(nonzeros(weights), #weights))
  assert(nonzeros(weights) == #weights / 2)
end

-- A hidden neuron is a row of the first layer, its bias, and a column of the second: a coupling.
-- Keeps the 8 strongest of 32.
local function remove_neurons()
  local w1, b1, w2 = random_array(32 * 16), random_array(32), random_array(4 * 32)
  local rows = sparsekit.Block(sparsekit.View(w1, { 32, 16 }), { 1, 0 }, "rows")
  local bias = sparsekit.Block(sparsekit.View(b1, { 32, 1 }), { 1, 1 }, "bias")
  local columns = sparsekit.Block(sparsekit.View(w2, { 4, 32 }), { 0, 1 }, "columns")
  local neurons = sparsekit.Block.couple(
    { rows, bias, columns }, { { 0, 1 }, { 0, 1 }, { 1, 0 } }, "neurons")
  local report = sparsekit.Scope(neurons):keep_top(8)
  print(("neurons: %d of %d are left"):format(report.achieved, report.total))
  assert(report.achieved == 8 and nonzeros(b1) == 8)
  assert(nonzeros(w1) == 8 * 16 and nonzeros(w2) == 4 * 8)
end

-- A linear teacher uses 4 of its 32 inputs for each of 4 outputs. A student with a quarter of the
-- weights has to find out which: RigL grows weights where the gradient is large.
local function train_sparsely()
  local samples, inputs, outputs = 64, 32, 4
  local x = random_array(samples * inputs)
  local teacher = sparsekit.array("f32", outputs * inputs)
  for o = 0, outputs - 1 do
    for i = 1, 4 do
      teacher[o * inputs + o + 7 * i] = 1 + random() / 2
    end
  end
  local weights = random_array(outputs * inputs)
  local gradient = sparsekit.array("f32", outputs * inputs)
  local mask = sparsekit.array("u8", outputs * inputs)

  local masking = sparsekit.Masking(sparsekit.Schedule.cosine(0.3, 300), {
    seed = 1, grow = "gradient", dense_gradients = true,
  })
  masking:add("layer", sparsekit.View(weights, { outputs, inputs }), {
    mask = mask, gradient = gradient,
  })
  masking:initialise({ density = 0.25, mode = "erdos_renyi" })

  -- Half the mean square error; sets the gradient.
  local function loss()
    local sum = 0
    gradient:fill(0)
    for s = 0, samples - 1 do
      for o = 0, outputs - 1 do
        local difference = 0
        for i = 1, inputs do
          local at = o * inputs + i
          difference = difference + (weights[at] - teacher[at]) * x[s * inputs + i]
        end
        sum = sum + difference * difference / (2 * samples)
        for i = 1, inputs do
          local at = o * inputs + i
          gradient[at] = gradient[at] + difference * x[s * inputs + i] / samples
        end
      end
    end
    return sum
  end

  local before = loss()
  for t = 1, 400 do
    loss()
    for i = 1, #weights do
      weights[i] = weights[i] - 0.5 * gradient[i]
    end
    if t <= 300 and t % 10 == 0 then
      masking:update()
    end
    masking:step()
  end
  local after = loss()
  print(("sparse training: loss %.3f before, %.6f after, %d of %d weights"):format(
    before, after, nonzeros(mask), #mask))
  assert(after < 1e-3 and nonzeros(mask) == #mask / 4)
  for i = 1, #teacher do
    assert(teacher[i] == 0 or mask[i] == 1)
  end
end

prune_2_of_4()
remove_neurons()
train_sparsely()
