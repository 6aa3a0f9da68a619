--- Runs the conformance cases: conformance.lua CASES RESULTS. On LuaJIT all arrays are cdata.
--
-- SPDX-License-Identifier: Apache-2.0

local sparsekit = require("sparsekit")
local ffi = rawget(_G, "jit") and require("ffi")

local cases_folder, results_folder = arg[1], arg[2]
local THROWN = { "thrown by a function" }

local function read_file(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

local function write_file(path, bytes)
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
end

-- --- reading arguments ----------------------------------------------------------------------------

local SPECIAL = { inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0 }

local function number(text)
  return text and (SPECIAL[text] or assert(tonumber(text), text))
end

local function split(text, separator)
  local parts = {}
  for part in (text .. separator):gmatch("(.-)%" .. separator) do
    parts[#parts + 1] = part
  end
  return parts
end

local function numbers(text)
  local list = text and {}
  for i, part in ipairs(text and split(text, ",") or {}) do
    list[i] = number(part)
  end
  return list
end

local function lists(text)
  local all = text and {}
  for i, part in ipairs(text and split(text, ";") or {}) do
    all[i] = numbers(part)
  end
  return all
end

-- --- results --------------------------------------------------------------------------------------

local function ints(...)
  local texts = {}
  for i, value in ipairs({ ... }) do
    texts[i] = ("%d"):format(value)
  end
  return "ints " .. table.concat(texts, ",")
end

local function int_list(list)
  return ints((table.unpack or unpack)(list))
end

local function floats(...)
  local texts = {}
  for i, value in ipairs({ ... }) do
    texts[i] = value ~= value and "nan" or ("%.17g"):format(value)
  end
  return "numbers " .. table.concat(texts, ",")
end

local function report(r)
  return ints(r.total, r.requested, r.achieved, r.ties, r.not_converged)
end

local function text(value)
  return "text " .. value
end

local function failure(thrown)
  if thrown == THROWN then
    return "error callback"
  elseif sparsekit.is_error(thrown) then
    return "error " .. thrown.status_name .. " " .. thrown.message
  end
  return "error none " .. tostring(thrown)
end

-- --- functions of the cases -----------------------------------------------------------------------

local function throw()
  error(THROWN)
end

local function sum(elements)
  local total = 0
  for i = 1, #elements do
    total = total + elements[i]
  end
  return total
end

local REDUCE = { sum = sum, throw = throw, stop = function() return sparsekit.CANCEL end }
local PROGRESS = {
  cancel = function() return true end, throw = throw, count = function() return false end,
}
local CUSTOM = { half = function(t) return 1 / (2 + t) end, throw = throw }

-- Turns the first `count` bytes of a mask that are `from` into `to`.
local function turn(mask, count, from, to)
  for i = 1, #mask do
    if count > 0 and mask[i] == from then
      mask[i] = to
      count = count - 1
    end
  end
end

-- --- commands -------------------------------------------------------------------------------------

-- State of a case: arrays and objects by name, objects in the order of creation, masks of maskings.
local arrays, objects, order, masks, addresses

local commands = {}

local function keep(name, object)
  objects[name] = object
  order[#order + 1] = object
  return "ok"
end

local function array_list(names)
  local list = names and {}
  for i, name in ipairs(names and split(names, ",") or {}) do
    list[i] = arrays[name]
  end
  return list
end

local function named(name)
  return name and assert(arrays[name], name)
end

local function store(names, list)
  for i, name in ipairs(split(names, ",")) do
    arrays[name] = list[i]
  end
  return "ok"
end

-- The options that calls have in common.
local function options(o, more)
  local all = more or {}
  all.context = o.context and assert(objects[o.context])
  return all
end

local CTYPES = {
  f32 = "float[?]", f64 = "double[?]", f16 = "uint16_t[?]", bf16 = "uint16_t[?]",
  u8 = "uint8_t[?]", i64 = "int64_t[?]",
}

local function new_array(name, dtype, bytes)
  if not ffi then
    arrays[name] = sparsekit.array(dtype, bytes)
    local block = tonumber(("%p"):format(arrays[name]))
    addresses[name] = function(address) return block < address and address <= block + 64 end
    return "ok"
  end
  local data = ffi.new(CTYPES[dtype], #bytes / ffi.sizeof(CTYPES[dtype], 1))
  ffi.copy(data, bytes, #bytes)
  arrays[name] = sparsekit.array(dtype, data)
  local own = tonumber(ffi.cast("intptr_t", ffi.cast("void *", data)))
  addresses[name] = function(address) return address == own end
  return "ok"
end

function commands.array(p)
  return new_array(p[1], p[2], read_file(cases_folder .. "/data/" .. p[3]))
end

function commands.zeros(p)
  return new_array(p[1], p[2], sparsekit.array(p[2], number(p[3])):bytes())
end

function commands.readonly(p)
  arrays[p[1]]:freeze()
  return "ok"
end

function commands.save(p, _, case)
  write_file(("%s/%s.%s.bin"):format(results_folder, case, p[1]), arrays[p[1]]:bytes())
  return "ok"
end

function commands.address(p)
  return ints(addresses[p[1]](sparsekit.address(arrays[p[1]])) and 1 or 0)
end

function commands.context(p, o)
  return keep(p[1], sparsekit.Context({
    executor = o.executor, threads = number(o.threads), progress = PROGRESS[o.progress],
  }))
end

function commands.view(p, o)
  local shape = p[4] or numbers(o.shape)
  assert(arrays[p[3]]:dtype() == p[2])
  return keep(p[1], sparsekit.View(arrays[p[3]], shape, numbers(o.stride), number(o.offset)))
end

function commands.block(p, o)
  return keep(p[1], sparsekit.Block(objects[p[2]], numbers(o.shape), o.name))
end

function commands.scope(p, o)
  return keep(p[1], sparsekit.Scope(objects[p[2]], numbers(o.shape), o.name))
end

local function members(o)
  local list = {}
  for i, name in ipairs(split(o.members, ",")) do
    list[i] = objects[name]
  end
  return list, lists(o.orders), o.name
end

function commands.couple(p, o)
  return keep(p[1], sparsekit.Block.couple(members(o)))
end

function commands.couple_scopes(p, o)
  return keep(p[1], sparsekit.Scope.couple(members(o)))
end

function commands.close(p)
  objects[p[1]]:close()
  return "ok"
end

function commands.live()
  collectgarbage()
  return ints(sparsekit.live_handles())
end

-- Facts: a method without arguments and the form of its result.
for form, names in pairs({
  [text] = "format dtype score_dtype name",
  [int_list] = "shape stride grid_shape",
  [ints] = "offset numel cosize numblk numel_per_block leaf_count numscope numblk_per_scope"
    .. " numel_per_scope member_count position layer_count baseline",
  [floats] = "adjusted_growth",
}) do
  for name in names:gmatch("%S+") do
    commands[name] = function(p)
      local object = objects[p[1]]
      return form(object[name](object))
    end
  end
end

function commands.linear_offset(p, o)
  return ints(objects[p[1]]:linear_offset(numbers(o.index)))
end

function commands.to_param_rc(p, o)
  return ints(objects[p[1]]:to_param_rc(numbers(o.index), number(o.cols)))
end

function commands.leaf(p)
  return int_list(objects[p[1]]:leaf_shape(number(p[2])))
end

function commands.sparsity_to_nnz(p)
  return ints(objects[p[1]]:sparsity_to_nnz(number(p[2])))
end

function commands.norms(p, o)
  return store(o.out, {
    objects[p[1]]:norms(number(o.p), options(o, { values = array_list(o.values) })),
  })
end

for _, name in ipairs({ "min", "max" }) do
  commands[name] = function(p, o)
    local block = objects[p[1]]
    return store(o.out, { block[name](block, options(o)) })
  end
end

function commands.nnz(p, o)
  local total, counts = objects[p[1]]:nnz(number(o.eps), options(o))
  if o.out then
    store(o.out, { counts })
  end
  return ints(total)
end

function commands.reduce(p, o)
  return store(o.out, { objects[p[1]]:reduce(REDUCE[o.fn], options(o)) })
end

for name, argument in pairs({
  apply_mask = "mask", apply_keep_mask = "mask", apply_multiplier = "multiplier",
}) do
  commands[name] = function(p, o)
    local block = objects[p[1]]
    block[name](block, named(o[argument]), options(o, { into = array_list(o.into) }))
    return "ok"
  end
  commands["view_" .. name] = function(p, o)
    local view = objects[p[1]]
    view[name](
      view, numbers(o.shape), named(o[argument]), options(o, { into = array_list(o.into) }))
    return "ok"
  end
end

function commands.hard_threshold(p, o)
  return report(objects[p[1]]:hard_threshold(named(o.thresholds), options(o, {
    values = array_list(o.values), into = array_list(o.into),
  })))
end

function commands.soft_threshold(p, o)
  return report(objects[p[1]]:soft_threshold(named(o.thresholds), options(o, {
    conditioners = array_list(o.conditioners), eps = number(o.eps), atol = number(o.atol),
    max_iter = number(o.max_iter), scale = o.scale == "1", into = array_list(o.into),
  })))
end

function commands.set_data(p, o)
  objects[p[1]]:set_data(array_list(o.source), options(o))
  return "ok"
end

function commands.block_masks(p, o)
  return store(o.out, objects[p[1]]:masks(named(o.mask), options(o)))
end

local function described(view)
  local result = text(view:format())
  view:close()
  return result
end

function commands.block_view(p, o)
  return described(objects[p[1]]:block_view(o.reorder == "1"))
end

function commands.broadcast_fake(p)
  return described(objects[p[1]]:broadcast_fake())
end

function commands.expand_block_tensor(p)
  return described(objects[p[1]]:expand_block_tensor())
end

function commands.merged(p, o)
  return store(o.out, { objects[p[1]]:block_view_merged(options(o)) })
end

function commands.broadcast(p, o)
  return store(o.out, objects[p[1]]:broadcast_block_to_element(named(o.values), options(o)))
end

function commands.view_block_view(p, o)
  return described(objects[p[1]]:block_view(numbers(o.shape), o.reorder == "1"))
end

function commands.view_merged(p, o)
  return store(o.out, { objects[p[1]]:block_view_merged(numbers(o.shape), options(o)) })
end

function commands.view_broadcast(p, o)
  return store(o.out, {
    objects[p[1]]:broadcast_block_to_element(numbers(o.shape), named(o.values), options(o)),
  })
end

function commands.scope_norms(p, o)
  return store(o.out, { objects[p[1]]:block_norms(number(o.p), options(o)) })
end

function commands.block_to_scope(p, o)
  return store(o.out, { objects[p[1]]:block_to_scope(array_list(o.values), options(o)) })
end

function commands.scope_to_block(p, o)
  return store(o.out, objects[p[1]]:scope_to_block(named(o.values), options(o)))
end

function commands.block_to_scope_view(p, o)
  return described(objects[p[1]]:block_to_scope_view(o.reorder == "1"))
end

function commands.kth_largest(p, o)
  return store(o.out, {
    objects[p[1]]:kth_largest(numbers(o.k), options(o, {
      values = array_list(o.values), scores = named(o.scores),
    })),
  })
end

function commands.kth_mid(p, o)
  return store(o.out, {
    objects[p[1]]:kth_mid(numbers(o.k), options(o, {
      values = array_list(o.values), scores = named(o.scores), k_weight = number(o.k_weight),
    })),
  })
end

function commands.keep_top(p, o)
  return report(objects[p[1]]:keep_top(numbers(o.counts), options(o, {
    values = array_list(o.values), scores = named(o.scores), ties = o.ties,
    into = array_list(o.into),
  })))
end

function commands.masks(p, o)
  local list, counts = objects[p[1]]:masks(numbers(o.counts), options(o, {
    values = array_list(o.values), scores = named(o.scores), block_mask = named(o.block_mask),
    ties = o.ties,
  }))
  store(o.out, list)
  return report(counts)
end

function commands.prune_nm(p, o)
  return report(objects[p[1]]:prune_nm(
    number(o.axis), number(o.n), number(o.m), options(o, { into = array_list(o.into) })))
end

function commands.prune_unstructured(p, o)
  return report(objects[p[1]]:prune_unstructured(
    number(o.sparsity), options(o, { into = array_list(o.into) })))
end

function commands.soft_threshold_blocks(p, o)
  return report(objects[p[1]]:soft_threshold_blocks(
    numbers(o.shape), number(o.threshold), options(o, { into = array_list(o.into) })))
end

local SCHEDULES = {
  cosine = { "prune_rate", "t_max", "eta_min", "last_epoch" },
  linear = { "prune_rate", "t_max" },
  magnitude = { "initial", "final", "t_max", "t_start", "interval" },
}

function commands.schedule(p, o)
  if p[2] == "custom" then
    return keep(p[1], sparsekit.Schedule.custom(CUSTOM[o.fn]))
  end
  local arguments = {}
  for i, name in ipairs(SCHEDULES[p[2]]) do
    arguments[i] = number(o[name])
  end
  local make = sparsekit.Schedule[p[2]]
  return keep(p[1], make((table.unpack or unpack)(arguments, 1, #SCHEDULES[p[2]])))
end

function commands.schedule_step(p, o)
  objects[p[1]]:step(number(o.t))
  return "ok"
end

function commands.rate(p, o)
  return floats(objects[p[1]]:rate(number(o.current)))
end

function commands.cumulative_sparsity(p, o)
  return floats(objects[p[1]]:cumulative_sparsity(number(o.t)))
end

function commands.masking(p, o)
  local mine = {}
  local throwing = o.fn == "throw" and throw
  local masking = sparsekit.Masking(objects[p[2]], {
    seed = number(o.seed), prune = o.prune, redistribute = o.redistribute, grow = o.grow,
    dense_gradients = o.dense_gradients == "1",
    prune_criterion = o.prune == "struct_criterion" and (throwing or sum) or nil,
    grow_criterion = o.grow == "struct_criterion" and (throwing or sum) or nil,
    prune_fn = o.prune == "callback" and (throwing or function(layer, _, requested)
      turn(mine[layer], requested, 1, 0)
    end) or nil,
    grow_fn = o.grow == "callback" and (throwing or function(layer, requested)
      turn(mine[layer], requested, 0, 1)
    end) or nil,
    statistic_fn = o.redistribute == "callback" and (throwing or function(layer)
      return 1 + layer
    end) or nil,
  })
  masks[p[1]] = mine
  return keep(p[1], masking)
end

function commands.add(p, o)
  local id = objects[p[1]]:add(p[2], objects[p[3]], {
    mask = named(o.mask), gradient = named(o.gradient), momentum = named(o.momentum),
    adam_m1 = named(o.adam_m1), adam_m2 = named(o.adam_m2),
  })
  masks[p[1]][id] = named(o.mask)
  return ints(id)
end

function commands.remove(p)
  objects[p[1]]:remove(p[2])
  return "ok"
end

function commands.remove_matching(p)
  return ints(objects[p[1]]:remove_matching(p[2]))
end

function commands.has_layer(p)
  return ints(objects[p[1]]:has_layer(number(p[2])) and 1 or 0)
end

function commands.layer_name(p)
  return text(objects[p[1]]:layer_name(number(p[2])))
end

function commands.find(p)
  return ints(objects[p[1]]:find(p[2]))
end

function commands.initialise(p, o)
  objects[p[1]]:initialise(options(o, {
    density = number(o.density), mode = o.mode, draw = o.draw, counts = numbers(o.counts),
  }))
  return "ok"
end

function commands.densities(p, o)
  local list = objects[p[1]]:densities({ density = number(o.density), mode = o.mode })
  return floats((table.unpack or unpack)(list))
end

function commands.apply(p, o)
  objects[p[1]]:apply(split(o.what, ","), options(o))
  return "ok"
end

function commands.step(p, o)
  objects[p[1]]:step(options(o))
  return "ok"
end

function commands.update(p, o)
  local r = objects[p[1]]:update(options(o))
  return floats(
    r.rate, r.requested_removed, r.removed, r.requested_grown, r.grown, r.nonzeros, r.residual)
end

function commands.stats(p, o)
  local s = objects[p[1]]:stats(number(o.layer))
  return floats(
    s.numel, s.nonzeros, s.zeros, s.density, s.requested_density, s.statistic, s.rate,
    s.requested_removed, s.removed, s.requested_grown, s.grown)
end

function commands.state_save(p)
  arrays[p[2]] = objects[p[1]]:save()
  return "ok"
end

function commands.state_restore(p)
  objects[p[1]]:restore(arrays[p[2]])
  return "ok"
end

-- --- the run --------------------------------------------------------------------------------------

local function begin_case()
  arrays, objects, order, masks, addresses = {}, {}, {}, {}, {}
end

local function end_case()
  for _, object in ipairs(order) do
    object:close()
  end
  begin_case()
end

local function run_step(fields)
  local positional, named_ones = {}, {}
  for i = 3, #fields do
    local key, value = fields[i]:match("^([%w_]+)=(.*)$")
    if key then
      named_ones[key] = value
    else
      positional[#positional + 1] = fields[i]
    end
  end
  local command = commands[fields[2]]
  if command == nil then
    return "error none unknown command " .. fields[2]
  end
  local done, result = pcall(command, positional, named_ones, fields[1])
  return done and result or failure(result)
end

local results = assert(io.open(results_folder .. "/results.tsv", "wb"))
local case, step = nil, 0
begin_case()
for line in io.lines(cases_folder .. "/cases.tsv") do
  local fields = split(line, "\t")
  if fields[1] ~= case then
    end_case()
    case, step = fields[1], 0
  end
  step = step + 1
  results:write(("%s\t%d\t%s\n"):format(case, step, run_step(fields)))
end
end_case()
results:close()
