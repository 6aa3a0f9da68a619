--- What the conformance cases cannot test: unit.lua README.md
--
-- SPDX-License-Identifier: Apache-2.0

local sparsekit = require("sparsekit")
local ffi = rawget(_G, "jit") and require("ffi")
local array, View, Block, Scope = sparsekit.array, sparsekit.View, sparsekit.Block, sparsekit.Scope
local Schedule, Masking, Context = sparsekit.Schedule, sparsekit.Masking, sparsekit.Context
local status = sparsekit.status

local tests = {}
local order = {}
setmetatable(tests, { __newindex = function(_, name, test)
  order[#order + 1] = { name = name, run = test }
end })

local function equal(got, expected, what)
  if got ~= expected then
    error(("%s: got %s, expected %s"):format(what or "value", tostring(got), tostring(expected)), 2)
  end
end

local function equal_list(got, expected)
  equal(#got, #expected, "length")
  for i = 1, #expected do
    equal(got[i], expected[i], "element " .. i)
  end
end

-- The call must fail with this status; gives the error object.
local function refused(expected, fn, ...)
  local done, failure = pcall(fn, ...)
  assert(not done, "was not refused")
  assert(sparsekit.is_error(failure), tostring(failure))
  equal(failure.status, expected, tostring(failure))
  return failure
end

local function collect()
  collectgarbage()
  collectgarbage()
end

local function ones(n)
  return array("f32", n):fill(1)
end

-- --- arrays ---------------------------------------------------------------------------------------

function tests.arrays_hold_numbers_of_every_dtype()
  local values = {
    f32 = { 0.5, -2, 2 ^ 100 }, f64 = { 0.1, -1e300, 1 / 3 }, u8 = { 0, 1, 255 },
    i64 = { -1, 0, 2 ^ 52 }, f16 = { 0, 0x3c00, 0xffff }, bf16 = { 0x3f80, 1, 2 },
  }
  for dtype, list in pairs(values) do
    local a = array(dtype, list)
    equal(a:dtype(), dtype)
    equal_list(a:totable(), list)
    equal_list(array(dtype, a:bytes()):totable(), list)
    equal(tostring(a), "sparsekit.array(" .. dtype .. ", 3)")
    equal_list(array(dtype, 3):totable(), { 0, 0, 0 })
  end
  equal(array("f32", { 1 }):bytes(), "\0\0\128\63")
end

-- What is no pointer must not be taken for the address of one.
function tests.pointers_are_cdata()
  for _, wrong in ipairs({ io.stdout, "bytes that Lua shares", {}, 5 }) do
    refused(status.INVALID_ARGUMENT, array, "f32", 2, wrong)
  end
end

-- Other userdata must not be taken for a handle.
function tests.handles_are_checked()
  local native = require("sparsekit.native")
  for _, wrong in ipairs({ io.stdout, ones(4) }) do
    refused(status.INVALID_ARGUMENT, native.block_numblk, wrong)
    refused(status.INVALID_ARGUMENT, native.block_couple, { wrong }, nil, "name")
    refused(status.INVALID_ARGUMENT, native.close, wrong)
    refused(status.INVALID_ARGUMENT, Block.numblk, { handle = wrong })
  end
end

function tests.scopes_know_their_members()
  local pair = Block.couple({ Block(View(ones(4), { 2, 2 }), { 1, 2 }), Block(View(ones(6), { 2, 3 }), { 1, 3 }) })
  local last = array("f64", { 1, 2, 3, 4 })
  local scope = Scope.couple({ Scope(pair), Scope(Block(View(last, { 4, 1 }))) })
  equal(scope:member_block(0):leaf_count(), 2)
  local member = scope:member_block(1)
  equal(member:numblk(), 4)
  equal_list(member:norms(1):totable(), { 1, 2, 3, 4 })
  equal(scope:leaf_view(1):numel(), 6)
  equal(scope:leaf_view(2):array(), last)
  refused(status.OUT_OF_BOUNDS, scope.member_block, scope, 2)
  refused(status.OUT_OF_BOUNDS, scope.leaf_view, scope, 3)
  scope:close()
  refused(status.INVALID_ARGUMENT, scope.member_block, scope, 0)
end

function tests.orders_are_lists_of_lists()
  local block = Block(View(ones(4), { 2, 2 }), { 1, 2 })
  refused(status.INVALID_ARGUMENT, Block.couple, { block, block }, { 0, 1 })
  refused(status.INVALID_ARGUMENT, Block.couple, { block, block }, 1)
end

function tests.arrays_have_bounds()
  local a = array("f32", 2)
  equal(a[0], nil)
  equal(a[3], nil)
  equal(a[1.5], nil)
  for _, index in ipairs({ 0, 3, -1, 1.5, "x" }) do
    refused(status.INVALID_ARGUMENT, function() a[index] = 1 end)
  end
  refused(status.INVALID_ARGUMENT, function() a[1] = "1" end)
  refused(status.INVALID_ARGUMENT, function() array("u8", 1)[1] = 256 end)
  refused(status.INVALID_ARGUMENT, function() array("f16", 1)[1] = -1 end)
  refused(status.INVALID_ARGUMENT, array, "f31", 1)
  refused(status.INVALID_ARGUMENT, array, "f32", -1)
  refused(status.INVALID_ARGUMENT, array, "f32", 2 ^ 62)
  refused(status.INVALID_ARGUMENT, array, "f32", nil)
  refused(status.SHAPE_MISMATCH, array, "f32", "abc")
end

function tests.integers_are_exact_or_refused()
  local view = View(array("f32", 1), { 1 }, { 1 }, 2 ^ 53)
  equal(view:offset(), 2 ^ 53)
  refused(status.INVALID_ARGUMENT, View, array("f32", 4), { 2.5 })
  refused(status.INVALID_ARGUMENT, View, array("f32", 4), { 0 / 0 })
  refused(status.INVALID_ARGUMENT, View, array("f32", 4), { "4" })
  if math.maxinteger then
    local offset = math.tointeger(2 ^ 53) + 1
    equal(View(array("f32", 1), { 1 }, { 1 }, offset):offset(), offset)
    equal(array("i64", { math.maxinteger })[1], math.maxinteger)
    equal(math.type(view:numel()), "integer")
  else
    refused(status.INVALID_ARGUMENT, View, array("f32", 1), { 1 }, { 1 }, 2 ^ 53 + 2)
  end
end

function tests.the_library_sees_the_memory_of_the_array()
  local a = ones(8)
  View(a, { 8 }):prune_unstructured(0.5)
  equal_list(a:totable(), { 1, 1, 1, 1, 0, 0, 0, 0 })
  assert(sparsekit.address(a) ~= sparsekit.address(ones(8)))
  equal(sparsekit.address(a), sparsekit.address(View(a, { 8 }):array()))
end

function tests.cdata_is_used_in_place()
  if not ffi then return end
  for ctype, dtype in pairs({
    ["float[?]"] = "f32", ["double[?]"] = "f64", ["uint8_t[?]"] = "u8", ["int64_t[?]"] = "i64",
  }) do
    local data = ffi.new(ctype, 5)
    local a = array(nil, data)
    equal(a:dtype(), dtype)
    equal(#a, 5)
    equal(sparsekit.address(data), tonumber(ffi.cast("intptr_t", ffi.cast("void *", data))))
    a[2] = 7
    equal(tonumber(data[1]), 7)
  end
  local data = ffi.new("float[4]", 1, 2, 3, 4)
  View(data, { 2, 2 }):prune_nm(1, 1, 2)
  equal_list({ data[0], data[1], data[2], data[3] }, { 0, 2, 0, 4 })
end

function tests.cdata_of_other_types_needs_its_dtype_or_is_refused()
  if not ffi then return end
  local words = ffi.new("uint16_t[2]", 0x3c00, 0x4000)
  refused(status.INVALID_ARGUMENT, View, words, { 2 })
  View(array("f16", words), { 2 }):prune_unstructured(0.5)
  equal_list({ words[0], words[1] }, { 0, 0x4000 })
  refused(status.INVALID_ARGUMENT, array, "f32", words)
  refused(status.INVALID_ARGUMENT, View, ffi.new("int[4]"), { 4 })
  refused(status.INVALID_ARGUMENT, View, ffi.new("float *"), { 4 })
  refused(status.INVALID_ARGUMENT, View, ffi.new("struct { int x; }"), { 4 })
  local constant = View(ffi.new("const float[2]", 1, 2), { 2 })
  refused(status.INVALID_ARGUMENT, constant.prune_unstructured, constant, 0.5)
end

function tests.cdata_pointers_go_both_ways()
  if not ffi then return end
  local data = ffi.new("float[4]", 1, 2, 3, 4)
  local a = array("f32", 2, data + 1)
  equal_list(a:totable(), { 2, 3 })
  a:cdata()[1] = 9
  equal(data[2], 9)
  refused(status.INVALID_ARGUMENT, array, "f32", 2, ffi.cast("float *", nil))
end

function tests.read_only_arrays_are_refused_before_anything_is_written()
  local a, out = ones(4):freeze(), array("f32", 4)
  local view = View(a, { 4 })
  refused(status.INVALID_ARGUMENT, view.prune_unstructured, view, 0.5)
  refused(status.INVALID_ARGUMENT, function() a[1] = 2 end)
  equal_list(a:totable(), { 1, 1, 1, 1 })
  view:prune_unstructured(0.5, { into = out })
  equal_list(out:totable(), { 1, 1, 0, 0 })
  refused(status.INVALID_ARGUMENT, view.prune_unstructured, view, 0.5, { into = a })
end

function tests.what_is_no_array_is_refused()
  local view = View(ones(4), { 4 })
  for _, wrong in ipairs({ "text", 3, true, {}, io.stdout, view, print }) do
    refused(status.INVALID_ARGUMENT, View, wrong, { 4 })
  end
  local block = Block(view, { 2 })
  for _, wrong in ipairs({ "text", true, view, { view }, { "x" } }) do
    refused(status.INVALID_ARGUMENT, block.set_data, block, wrong)
  end
  refused(status.SHAPE_MISMATCH, block.set_data, block, {})
  refused(status.SHAPE_MISMATCH, block.set_data, block, { ones(4), ones(4) })
  refused(status.UNSUPPORTED_DTYPE, block.apply_mask, block, array("f32", 2))
  refused(status.SHAPE_MISMATCH, block.apply_mask, block, array("u8", 3))
  refused(status.INVALID_ARGUMENT, Block, block)
  refused(status.INVALID_ARGUMENT, Block, nil)
  refused(status.INVALID_ARGUMENT, Scope, view)
  refused(status.INVALID_ARGUMENT, Block.couple, { view })
  refused(status.INVALID_ARGUMENT, Masking, view)
end

function tests.a_view_keeps_its_array_alive()
  local watched = setmetatable({}, { __mode = "k" })
  local view
  do
    local a = ones(4)
    watched[a] = true
    view = View(a, { 4 })
  end
  local scope = Scope(Block(view, { 1 }))
  view = nil
  collect()
  assert(next(watched), "the array was collected")
  equal(scope:keep_top(3).achieved, 3)
  scope:close()
  collect()
  equal(next(watched), nil)
end

function tests.a_borrowing_array_keeps_its_cdata_alive()
  if not ffi then return end
  local freed = false
  local data = ffi.gc(ffi.new("float[4]", 1, 2, 3, 4), function() freed = true end)
  local view = View(data, { 4 })
  data = nil
  collect()
  assert(not freed)
  equal(view:array()[4], 4)
  view = nil
  collect()
  assert(freed)
end

-- --- handles --------------------------------------------------------------------------------------

local function every_object()
  local view = View(ones(8), { 2, 4 })
  local block = Block(view, { 1, 2 })
  local scope = Scope(block)
  local schedule = Schedule.custom(function() return 0.5 end)
  local masking = Masking(schedule, { prune = "callback", prune_fn = print })
  masking:add("layer", view, { mask = array("u8", 8) })
  return { view, block, scope, schedule, masking, Context({ progress = print }) }
end

function tests.objects_close_in_any_order()
  collect()
  local before = sparsekit.live_handles()
  local count = #every_object()
  for first = 1, count do
    local objects = every_object()
    for i = 0, count - 1 do
      local object = objects[(first + i) % count + 1]
      object:close()
      object:close()
    end
    objects = every_object()
    for i = count, 1, -1 do
      objects[i]:close()
    end
  end
  collect()
  equal(sparsekit.live_handles(), before)
end

function tests.children_work_when_parents_are_closed()
  local a = array("f32", { 1, 2, 3, 4 })
  local view = View(a, { 4 })
  local block = Block(view, { 1 })
  local scope = Scope(block)
  view:close()
  block:close()
  collect()
  equal(scope:keep_top(1).achieved, 1)
  equal_list(a:totable(), { 0, 0, 0, 4 })
end

-- Every method of every class, with arguments that would do were it open.
function tests.closed_objects_fail_with_a_status()
  local mask = array("u8", 4):fill(1)
  local shapes = { { 1, 2 }, mask, 0.5, 1, 2 }
  for _, object in ipairs(every_object()) do
    object:close()
    for name, method in pairs(getmetatable(object)) do
      local closing = name == "close" or name == "__close"
      local constructor = name == "new" or name == "couple" or name == "cosine" or name == "linear"
        or name == "magnitude" or name == "custom"
      if type(method) == "function" and not closing and not constructor
        and name ~= "native_score_dtype" and name ~= "__tostring" and name ~= "array" then
        local failed = 0
        for _, argument in ipairs(shapes) do
          local done, failure = pcall(method, object, argument)
          assert(not done, name .. " of a closed object gave something")
          failed = failed + (sparsekit.is_error(failure) and 1 or 0)
        end
        assert(failed > 0, name .. " failed without a status")
      end
    end
  end
  local context = Context()
  context:close()
  local view = View(ones(4), { 4 })
  refused(status.INVALID_ARGUMENT, view.prune_unstructured, view, 0.5, { context = context })
  local closed = View(ones(4), { 4 })
  closed:close()
  refused(status.INVALID_ARGUMENT, Block, closed)
  equal(tostring(closed), "a closed view")
end

function tests.lua_5_4_closes_variables()
  if _VERSION ~= "Lua 5.4" then return end
  local before = sparsekit.live_handles()
  local inside = load([[
    local sparsekit, data = ...
    local view <close> = sparsekit.View(data, {4})
    return sparsekit.live_handles()
  ]])(sparsekit, ones(4))
  equal(inside, before + 1)
  equal(sparsekit.live_handles(), before)
end

function tests.the_garbage_collector_closes_what_nobody_closed()
  collect()
  local before = sparsekit.live_handles()
  for _ = 1, 300 do
    every_object()
  end
  collect()
  equal(sparsekit.live_handles(), before)
end

function tests.memory_does_not_grow()
  local function work()
    for _ = 1, 300 do
      local objects = every_object()
      objects[2]:reduce(function(elements) return #elements end)
      pcall(objects[2].reduce, objects[2], function() error({}) end)
      objects[3]:keep_top(1)
    end
    collect()
    return collectgarbage("count")
  end
  work()
  local before = work()
  local after = work()
  assert(after < before + 64, ("from %g kB to %g kB"):format(before, after))
end

-- Collects inside callbacks, where only the call under way holds its objects.
function tests.collecting_inside_callbacks_is_safe()
  for _ = 1, 20 do
    local out = Block(View(ones(64), { 64 }), { 2 }):reduce(function(elements)
      collectgarbage()
      return elements[1] + elements[2]
    end)
    for i = 1, #out do
      equal(out[i], 2)
    end
  end
end

function tests.closing_inside_callbacks_is_safe()
  local view = View(ones(8), { 8 })
  local block = Block(view, { 2 })
  local out = block:reduce(function(elements)
    view:close()
    block:close()
    collectgarbage()
    return #elements
  end)
  equal_list(out:totable(), { 2, 2, 2, 2 })
  refused(status.INVALID_ARGUMENT, block.numblk, block)

  collect()
  local before = sparsekit.live_handles()
  local mask = array("u8", 8)
  local masking
  masking = Masking(Schedule.custom(function() return 0.5 end), {
    prune = "callback",
    prune_fn = function()
      masking:close()
      collect()
      mask[1] = 0
    end,
  })
  masking:add("layer", View(ones(8), { 8 }), { mask = mask })
  masking:initialise({ mode = "resume" })
  equal(masking:update().removed, 1)
  masking = nil
  collect()
  equal(sparsekit.live_handles(), before)
end

-- --- errors and functions -------------------------------------------------------------------------

function tests.errors_say_what_is_wrong()
  local failure = refused(status.OVERLAP, View, ones(4), { 2, 2 }, { 1, 1 })
  equal(failure.status_name, "SPK_OVERLAP")
  assert(failure.message:find("(2,2):(1,1)", 1, true), failure.message)
  equal(tostring(failure), "SPK_OVERLAP: " .. failure.message)
  assert(not sparsekit.is_error("text") and not sparsekit.is_error({}))
end

function tests.misspelt_options_and_names_are_refused()
  local view = View(ones(4), { 4 })
  local failure = refused(
    status.INVALID_ARGUMENT, view.prune_unstructured, view, 0.5, { int = ones(4) })
  assert(failure.message:find("got int, expected into", 1, true), failure.message)
  refused(status.INVALID_ARGUMENT, Masking, Schedule.linear(0.3, 10), { grow = "gradients" })
  refused(status.INVALID_ARGUMENT, Context, { executor = "gpu" })
  refused(status.INVALID_ARGUMENT, view.prune_unstructured, view, 0.5, "serial")
end

function tests.what_a_function_throws_comes_out_as_it_is()
  local block = Block(View(ones(4), { 4 }), { 2 })
  for _, thrown in ipairs({ { "table" }, "text", 7, false, print }) do
    local done, failure = pcall(block.reduce, block, function() error(thrown, 0) end)
    equal(done, false)
    equal(failure, thrown)
  end
  local done, failure = pcall(block.reduce, block, function() error(nil) end)
  equal(done, false)
  equal(failure, nil)
end

function tests.a_function_is_called_no_more_after_it_threw()
  local calls = 0
  local block = Block(View(ones(8), { 8 }), { 1 })
  pcall(block.reduce, block, function()
    calls = calls + 1
    error("stop")
  end)
  equal(calls, 1)
end

function tests.functions_must_give_numbers()
  local block = Block(View(ones(4), { 4 }), { 2 })
  for _, wrong in ipairs({ "1", true, {} }) do
    refused(status.INVALID_ARGUMENT, block.reduce, block, function() return wrong end)
  end
  refused(status.INVALID_ARGUMENT, block.reduce, block, function() end)
  refused(status.INVALID_ARGUMENT, block.reduce, block, "no function")
  refused(status.CANCELLED, block.reduce, block, function() return sparsekit.CANCEL end)
end

function tests.functions_may_call_the_library()
  local block = Block(View(ones(8), { 8 }), { 2 })
  local other = Context({ executor = "serial" })
  local out = block:reduce(function(elements)
    local inner = array("f64", elements)
    refused(status.INVALID_ARGUMENT, block.norms, block, 2)
    local sums = Block(View(inner, { 2 }), { 0 }):reduce(
      function(x) return x[1] + x[2] end, { context = other })
    refused(status.OVERLAP, View, inner, { 2 }, { 0 })
    return 10 * sums[1]
  end)
  equal_list(out:totable(), { 20, 20, 20, 20 })
end

function tests.an_inner_failure_does_not_hide_the_outer_one()
  local block = Block(View(ones(8), { 8 }), { 2 })
  refused(status.CANCELLED, block.reduce, block, function()
    pcall(View, ones(2), { 2 }, { 0 })
    return sparsekit.CANCEL
  end)
end

function tests.functions_outlive_their_coroutine()
  local schedule
  local routine = coroutine.create(function()
    schedule = Schedule.custom(function(t) return 1 / (t + 2) end)
  end)
  assert(coroutine.resume(routine))
  routine = nil
  collect()
  equal(schedule:rate(), 0.5)
  local rate = coroutine.wrap(function() return schedule:rate() end)()
  equal(rate, 0.5)
end

function tests.functions_cannot_yield_across_the_library()
  local block = Block(View(ones(4), { 4 }), { 2 })
  local routine = coroutine.create(function()
    return pcall(block.reduce, block, function() coroutine.yield(1) end)
  end)
  local resumed, done, failure = coroutine.resume(routine)
  assert(resumed and done == false and tostring(failure):find("yield"), tostring(failure))
end

function tests.a_masking_keeps_its_schedule_s_function_alive()
  local mask = array("u8", 8)
  local schedule = Schedule.custom(function() return 0.25 end)
  local masking = Masking(schedule, { seed = 3 })
  masking:add("layer", View(array("f32", { 1, 2, 3, 4, 5, 6, 7, 8 }), { 8 }), { mask = mask })
  schedule:close()
  schedule = nil
  collect()
  masking:initialise({ mode = "resume" })
  equal(masking:update().removed, 2)
  equal_list(mask:totable(), { 0, 0, 1, 1, 1, 1, 1, 1 })
end

function tests.the_state_travels_as_bytes()
  local function make()
    local masking = Masking(Schedule.linear(0.5, 10), { seed = 5 })
    masking:add("layer", View(ones(8), { 8 }), { mask = array("u8", 8) })
    return masking
  end
  local one, two = make(), make()
  one:initialise({ mode = "resume" })
  one:step()
  two:restore(one:save():bytes())
  equal(two:save():bytes(), one:save():bytes())
  equal(two:stats().nonzeros, 8)
  refused(status.INVALID_ARGUMENT, two.restore, two, "damaged")
end

-- --- the page for newcomers -----------------------------------------------------------------------

function tests.the_snippets_of_the_page_run()
  local file = assert(io.open(arg[1]))
  local page = file:read("*a")
  file:close()
  local count = 0
  for snippet in page:gmatch("```lua\n(.-)```") do
    if ffi or not snippet:find("ffi", 1, true) then
      assert((loadstring or load)(snippet, "=README.md"))()
    end
    count = count + 1
  end
  assert(count >= 2, "the page has too few snippets")
end

-- --- the run --------------------------------------------------------------------------------------

local failures = 0
for _, test in ipairs(order) do
  local done, message = xpcall(test.run, function(thrown)
    return debug.traceback(tostring(thrown), 2)
  end)
  if not done then
    failures = failures + 1
    io.stderr:write("FAILED: ", test.name, ": ", message, "\n")
  end
end
print(("%d passed, %d failed"):format(#order - failures, failures))
os.exit(failures == 0 and 0 or 1, true)
