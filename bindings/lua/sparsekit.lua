--- SparseKit: structured sparsity on arrays that you own, in place. For Lua 5.4 and LuaJIT.
--
-- SPDX-License-Identifier: Apache-2.0
--
-- Words and meanings are those of sparsekit.h and training.h. Elements of arrays and of Lua tables
-- count from 1, as everywhere in Lua; axes, orders, indices into views, leaf and member numbers and
-- the ids of layers count from 0, as in the C headers.
--
-- Every failure is an error object: a table with `status` (a number, see sparsekit.status),
-- `status_name` ("SPK_OVERLAP") and `message`, which tostring() joins.
--
-- The last argument of most calls is a table of options. All take `context` (a Context); those that
-- write an object's arrays take `into`: an array, or a list of one per leaf, that receives the
-- result while the object's own are only read.

local native = require("sparsekit.native")
local ffi = rawget(_G, "jit") and require("ffi")

local sparsekit = {}

-- --- errors ---------------------------------------------------------------------------------------

local Error = native.Error
Error.__index = Error

function Error.__tostring(failure)
  return failure.status_name .. ": " .. failure.message
end

--- The numbers of the statuses, by their names without SPK_: status.OVERLAP.
sparsekit.status = {}
for _, name in ipairs({
  "OK", "INVALID_ARGUMENT", "SHAPE_MISMATCH", "COUPLING", "OVERLAP", "OUT_OF_BOUNDS",
  "UNSUPPORTED_DTYPE", "OUT_OF_MEMORY", "NOT_CONVERGED", "CANCELLED", "UNAVAILABLE", "INTERNAL",
}) do
  sparsekit.status[name] = native[name]
end

--- Whether `value`, as pcall gives it, is an error object of this module.
function sparsekit.is_error(value)
  return getmetatable(value) == Error
end

--- A function of yours that returns this, instead of a number, ends the call with SPK_CANCELLED.
sparsekit.CANCEL = native.CANCEL

local function refuse(what, got, expected)
  local status = sparsekit.status.INVALID_ARGUMENT
  error(setmetatable({
    status = status,
    status_name = native.status_string(status),
    message = ("%s: got %s, expected %s"):format(what, got, expected),
  }, Error))
end

-- The number of a constant by its name in the headers, in lower case without the prefix.
local function constant(prefix, name, default)
  local value = native[prefix .. tostring(name or default):upper()]
  if value == nil then
    refuse(prefix:sub(1, -2):lower(), tostring(name), "a name that the headers have")
  end
  return value
end

local NO_OPTIONS = {}

-- Options that nobody reads are mistakes of spelling.
local function check_options(options, names)
  if options == nil then
    return NO_OPTIONS
  end
  if type(options) ~= "table" then
    refuse("options", type(options), "a table")
  end
  for name in pairs(options) do
    if not (" " .. names .. " context "):find(" " .. tostring(name) .. " ", 1, true) then
      refuse("option", tostring(name), names .. " context")
    end
  end
  return options
end

-- --- arrays ---------------------------------------------------------------------------------------

local DTYPES = {
  f32 = native.F32, f64 = native.F64, f16 = native.F16, bf16 = native.BF16,
  u8 = native.U8, i64 = native.I64,
}
local DTYPE_NAMES = {}
for name, code in pairs(DTYPES) do
  DTYPE_NAMES[code] = name
end

local function dtype_code(name)
  return DTYPES[name] or refuse("dtype", tostring(name), "f32, f64, f16, bf16, u8 or i64")
end

-- C's element types that tell the dtype; 16-bit words do not.
local CDATA_DTYPES = { float = "f32", double = "f64", ["unsigned char"] = "u8", int64_t = "i64" }
local CDATA_TYPES = {
  f32 = "float", f64 = "double", f16 = "uint16_t", bf16 = "uint16_t", u8 = "uint8_t", i64 = "int64_t",
}

-- An array over the elements of a cdata array (LuaJIT), which it keeps alive.
local function borrow(dtype, data)
  local spelled = tostring(ffi.typeof(data))
  local element = spelled:match("^ctype<([%w_ ]-) ?%[[%d?]+%]>$")
  local bare = element and element:gsub("^const ", "")
  dtype = dtype or CDATA_DTYPES[bare]
  if not element or not dtype then
    refuse("array", spelled, "float[], double[], uint8_t[] or int64_t[], or a dtype for other elements")
  end
  local size = ffi.sizeof(CDATA_TYPES[dtype] or refuse("dtype", tostring(dtype), "one of six names"))
  if ffi.sizeof(bare) ~= size then
    refuse("array", spelled, "elements of " .. dtype)
  end
  return native.array_borrow(
    DTYPES[dtype], ffi.sizeof(data) / size, ffi.cast("const void *", data), bare ~= element, data)
end

--- A new array, or one over memory that is there:
--   array(dtype, n)            n zeros
--   array(dtype, {1, 2, ...})  these numbers
--   array(dtype, "bytes")      a copy of these bytes, as array:bytes() gives them
--   array(dtype, cdata)        LuaJIT: the elements of a cdata array, in place; dtype nil = its own
--   array(dtype, n, pointer)   LuaJIT: n elements at a cdata pointer, which must outlive the array
-- dtype is f32, f64, u8 (masks), i64 (counts), or f16 and bf16, whose elements are given and taken
-- as 16-bit words. a[i] reads and writes an element (nil out of range), #a is their number.
function sparsekit.array(dtype, content, pointer)
  local kind = type(content)
  if kind == "cdata" then
    return borrow(dtype, content)
  end
  local code = dtype_code(dtype)
  if type(pointer) ~= "nil" then -- a NULL pointer equals nil
    if type(pointer) ~= "cdata" then
      refuse("pointer", type(pointer), "a cdata pointer")
    end
    return native.array_borrow(code, content, ffi.cast("const void *", pointer), false, pointer)
  elseif kind == "string" then
    return native.array_of_bytes(code, content)
  elseif kind == "number" then
    return native.array_new(code, content)
  elseif kind ~= "table" then
    refuse("array", kind, "a length, a table, a string or a cdata array")
  end
  local array = native.array_new(code, #content)
  for i = 1, #content do
    array[i] = content[i]
  end
  return array
end
local array = sparsekit.array

--- Methods of arrays; besides these, bytes() gives a string of its memory, and freeze() makes it
-- refuse to be written, for good, and returns it.
local Array = native.Array

--- The dtype's name.
function Array:dtype()
  return DTYPE_NAMES[native.array_dtype(self)]
end

--- Sets every element to `value`; returns the array.
function Array:fill(value)
  for i = 1, #self do
    self[i] = value
  end
  return self
end

--- The elements as a table.
function Array:totable()
  local values = {}
  for i = 1, #self do
    values[i] = self[i]
  end
  return values
end

--- LuaJIT: a cdata pointer to the first element, for fast loops; it counts from 0, checks nothing,
-- and is valid as long as the array.
function Array:cdata()
  return ffi.cast(CDATA_TYPES[self:dtype()] .. " *", native.array_pointer(self))
end

native.array_metatable.__tostring = function(self)
  return ("sparsekit.array(%s, %d)"):format(self:dtype(), #self)
end

-- An array as the wrapper takes it.
local function as_array(value)
  if native.array_is(value) then
    return value
  elseif type(value) == "cdata" then
    return borrow(nil, value)
  end
  return refuse("array", type(value), "a sparsekit.array or a cdata array")
end

-- A list of arrays; one array is a list of itself, nil is not given.
local function arrays(values)
  if values == nil then
    return nil
  elseif type(values) ~= "table" or getmetatable(values) ~= nil then
    return { as_array(values) }
  end
  local list = {}
  for i, value in ipairs(values) do
    list[i] = as_array(value)
  end
  return list
end

-- A list of one array, which may be given as a number or a table of numbers.
local function numbers(values, dtype)
  if type(values) == "number" then
    values = { values }
  end
  if type(values) == "table" and getmetatable(values) == nil then
    return { array(dtype, values) }
  elseif values == nil then
    return nil
  end
  return { as_array(values) }
end

-- One new array per size.
local function new_arrays(dtype, sizes)
  local list = {}
  for i, size in ipairs(sizes) do
    list[i] = array(dtype, size)
  end
  return list
end

local function integers(values)
  return type(values) == "number" and { values } or values
end

local function flag(value)
  return (value == true or value == 1) and 1 or 0
end

-- --- classes --------------------------------------------------------------------------------------

-- As many entries, all of them missing.
local function missing(leaves)
  local list = {}
  for i = 1, #(leaves or {}) do
    list[i] = false
  end
  return list
end

-- Objects are tables with `handle`, nil once closed, and `owned`, functions that the library has and
-- that live as long as the object. Those over arrays have `leaves`, the arrays of their leaves (false
-- once closed), and `sizes`, the numbers of elements of the leaves' views.
local function new_class(name)
  local class = { name_of_class = "sparsekit." .. name }
  class.__index = class
  --- Releases the handle now; without it the garbage collector does. May be called again.
  function class.close(self)
    local handle = self.handle
    self.handle = nil
    self.leaves = missing(self.leaves)
    if handle ~= nil then
      native.close(handle)
    end
  end
  class.__close = class.close
  sparsekit[name] = class
  return class
end

-- Makes Class(...) call Class.new(...).
local function callable(class)
  return setmetatable(class, {
    __call = function(_, ...)
      return class.new(...)
    end,
  })
end

local function check_class(object, class, what)
  if getmetatable(object) ~= class then
    refuse(what, type(object), "a " .. class.name_of_class)
  end
  return object
end

-- Facts that take nothing but the handle: class:fact().
local function facts(class, prefix, names)
  for name in names:gmatch("%S+") do
    local fact = native[prefix .. name]
    class[name] = function(self)
      return fact(self.handle)
    end
  end
end

local function append(list, more)
  for _, value in ipairs(more) do
    list[#list + 1] = value
  end
end

-- What a coupling of members is made of: handles (false if closed), arrays, sizes.
local function join(members, class)
  local handles, leaves, sizes = {}, {}, {}
  if type(members) ~= "table" then
    refuse("members", type(members), "a list")
  end
  for i, member in ipairs(members) do
    handles[i] = check_class(member, class, "member").handle or false
    append(leaves, member.leaves)
    append(sizes, member.sizes)
  end
  return handles, leaves, sizes
end

local function flatten(orders)
  if orders == nil then
    return nil
  end
  local flat = {}
  if type(orders) ~= "table" then
    refuse("orders", type(orders), "a list of one per member")
  end
  for _, order in ipairs(orders) do
    if type(order) ~= "table" then
      refuse("orders", type(order), "a list of axes per member")
    end
    append(flat, order)
  end
  return flat
end

local function report(values)
  return {
    total = values[1], requested = values[2], achieved = values[3], ties = values[4],
    not_converged = values[5],
  }
end

-- --- contexts -------------------------------------------------------------------------------------

--- How calls run. Optional everywhere.
local Context = callable(new_class("Context"))

-- Wraps a Lua function that takes the numbers one by one; what it returns goes through `result`.
local function callback(fn, result)
  if fn == nil then
    return nil
  elseif type(fn) ~= "function" then
    refuse("function", type(fn), "a function")
  end
  return native.Callback(function(values)
    return result(fn(values[1], values[2], values[3]))
  end)
end

local function as_it_is(value)
  return value
end

local function ignored(value)
  return value == sparsekit.CANCEL and value or 0
end

local function stop_if_true(value)
  return value and sparsekit.CANCEL or 0
end

--- Context{executor = "serial"|"tbb"|"openmp"|"default", threads = n, progress = function}.
-- progress(done, total) is called now and then; a true result cancels.
function Context.new(options)
  options = check_options(options, "executor threads progress")
  local progress = callback(options.progress, stop_if_true)
  local handle = native.context_create(
    constant("EXECUTOR_", options.executor, "default"), options.threads or 0, progress)
  return setmetatable({ handle = handle, owned = progress }, Context)
end

-- NULL is the process default, which a closed context must not turn into.
local function context_handle(context)
  if context == nil then
    return nil
  end
  check_class(context, Context, "context")
  return context.handle or refuse("context", "a closed one", "an open handle")
end

--- The executor's name.
function Context:executor()
  local code = native.context_executor(context_handle(self))
  for _, name in ipairs({ "serial", "tbb", "openmp" }) do
    if constant("EXECUTOR_", name) == code then
      return name
    end
  end
  return "default"
end

--- How many threads a call uses.
function Context:threads()
  return native.context_threads(context_handle(self))
end

--- Frees the scratch memory that idle calls left for reuse.
function Context:trim()
  native.context_trim(context_handle(self))
end

-- --- views ----------------------------------------------------------------------------------------

--- How elements lie in an array.
local View = callable(new_class("View"))

local function new_view(handle, leaves)
  return setmetatable({
    handle = handle, leaves = leaves, sizes = { native.view_numel(handle) },
  }, View)
end

--- View(array, shape, stride, offset), all counted in elements; stride nil = row-major contiguous.
-- View(array, "(4,6):(6,1)+2") reads the text form. The view keeps the array alive.
function View.new(data, shape, stride, offset)
  data = as_array(data)
  local dtype = native.array_dtype(data)
  if type(shape) == "string" then
    return new_view(native.view_parse(dtype, shape), { data })
  end
  return new_view(native.view_create(dtype, integers(shape), integers(stride), offset or 0), { data })
end

--- shape(), stride(), offset(), numel(), cosize(), format() (the text form).
facts(View, "view_", "shape stride offset numel cosize format")
View.__tostring = function(self)
  return self.handle and self:format() or "a closed view"
end

--- The dtype's name.
function View:dtype()
  return DTYPE_NAMES[native.view_dtype(self.handle)]
end

--- The view's array; nil for views that only describe, and closed ones.
function View:array()
  return self.leaves[1] or nil
end

--- Elements from the start of the array to the one at `index`, a list of indices from 0.
function View:linear_offset(index)
  return native.view_linear_offset(self.handle, integers(index))
end

--- Row and column of that element in a row-major matrix of `cols` columns.
function View:to_param_rc(index, cols)
  local at = native.view_to_param_rc(self.handle, integers(index), cols)
  return at[1], at[2]
end

--- The blocks of `shape` as a view of the same memory; reorder = true: grid axes first.
function View:block_view(shape, reorder)
  return new_view(native.view_block_view_of(self.handle, integers(shape), flag(reorder)), self.leaves)
end

--- The blocks gathered, each in one piece, in a new array.
function View:block_view_merged(shape, options)
  options = check_options(options, "")
  local out = array(self:dtype(), self:numel())
  native.view_block_view_merged(
    context_handle(options.context), self.handle, self.leaves, integers(shape), { out })
  return out
end

--- Each block's value (array or table) over its elements, in a new array of the values' dtype.
function View:broadcast_block_to_element(shape, values, options)
  options = check_options(options, "")
  values = numbers(values, "f64")
  local out = array(values and values[1]:dtype() or "f64", self:numel())
  native.view_broadcast_block_to_element(
    context_handle(options.context), self.handle, integers(shape), values, { out })
  return out
end

-- Zeroing and scaling of blocks, for views (which name the blocks' shape) and blocks.
for method, dtype in pairs({ apply_mask = "u8", apply_keep_mask = "u8", apply_multiplier = "f64" }) do
  View[method] = function(self, shape, values, options)
    options = check_options(options, "into")
    native["view_" .. method](
      context_handle(options.context), self.handle, self.leaves, arrays(options.into),
      integers(shape), numbers(values, dtype))
  end
end

--- Keeps the n of largest magnitude of every m elements along `axis`. Gives the report. {into}
function View:prune_nm(axis, n, m, options)
  options = check_options(options, "into")
  return report(native.prune_nm(
    context_handle(options.context), self.handle, self.leaves, arrays(options.into), axis, n, m))
end

--- Zeroes exactly floor(sparsity * numel) elements. Gives the report. {into}
function View:prune_unstructured(sparsity, options)
  options = check_options(options, "into")
  return report(native.prune_unstructured(
    context_handle(options.context), self.handle, self.leaves, arrays(options.into), sparsity))
end

--- Soft thresholding of blocks of `shape` with one threshold. Gives the report. {into}
function View:soft_threshold_blocks(shape, threshold, options)
  options = check_options(options, "into")
  return report(native.soft_threshold_blocks(
    context_handle(options.context), self.handle, self.leaves, arrays(options.into),
    integers(shape), threshold))
end

-- --- what blocks and scopes have in common --------------------------------------------------------

local function score_dtype(self)
  return DTYPE_NAMES[self.native_score_dtype(self.handle)]
end

local function define_thresholds(class, prefix)
  local hard = native[prefix .. "hard_threshold"]
  local soft = native[prefix .. "soft_threshold"]
  class.native_score_dtype = native[prefix .. "score_dtype"]
  class.score_dtype = score_dtype

  --- Zeroes the blocks with norm < threshold. Thresholds: a number, a table, an f32 or f64 array.
  -- Gives the report. {values, into}
  function class:hard_threshold(thresholds, options)
    options = check_options(options, "values into")
    return report(hard(
      context_handle(options.context), self.handle, self.leaves, arrays(options.into),
      numbers(thresholds, "f64"), arrays(options.values)))
  end

  --- Group soft thresholding, Euclidean or, with conditioners, in a diagonal metric. Gives the
  -- report. {conditioners, eps, atol, max_iter, scale, into}
  function class:soft_threshold(thresholds, options)
    options = check_options(options, "conditioners eps atol max_iter scale into")
    return report(soft(
      context_handle(options.context), self.handle, self.leaves, arrays(options.into),
      numbers(thresholds, "f64"), arrays(options.conditioners), options.eps or -1,
      options.atol or -1, options.max_iter or 0, flag(options.scale)))
  end
end

-- --- blocks ---------------------------------------------------------------------------------------

--- The units that live or die: a view cut into equal blocks, or a coupling of several.
local Block = callable(new_class("Block"))

local function new_block(handle, leaves, sizes)
  return setmetatable({ handle = handle, leaves = leaves, sizes = sizes }, Block)
end

--- Block(view, shape, name): shape nil = blocks of one element; an extent <= 0 spans its dimension.
function Block.new(view, shape, name)
  check_class(view, View, "view")
  return new_block(native.block_create(view.handle, integers(shape), name), view.leaves, view.sizes)
end

--- Block i of every member becomes one block. orders: a permutation of grid axes per member.
function Block.couple(members, orders, name)
  local handles, leaves, sizes = join(members, Block)
  return new_block(native.block_couple(handles, flatten(orders), name), leaves, sizes)
end

--- name(), grid_shape(), numblk(), numel_per_block(), numel(), leaf_count(); score_dtype() gives
-- "f32" or "f64".
facts(Block, "block_", "name grid_shape numblk numel_per_block numel leaf_count")
define_thresholds(Block, "block_")

--- The block spec of leaf `index`.
function Block:leaf(index)
  return new_block(
    native.block_leaf(self.handle, index), { self.leaves[index + 1] }, { self.sizes[index + 1] })
end

--- The extents of the blocks of leaf `index`.
function Block:leaf_shape(index)
  return native.block_leaf_shape(self.handle, index)
end

--- The view of leaf `index`.
function Block:leaf_view(index)
  return new_view(native.block_leaf_view(self.handle, index), { self.leaves[index + 1] })
end

-- A new array of one score per block.
local function scores_of(self)
  return array(self:score_dtype(), self:numblk())
end

--- One Lp norm per block, in a new array. {values}: measures these instead
function Block:norms(p, options)
  options = check_options(options, "values")
  local out = scores_of(self)
  native.block_norms(
    context_handle(options.context), self.handle, arrays(options.values) or self.leaves, p, { out })
  return out
end

--- min(), max(): the smallest, the largest element of each block, in a new array.
for _, name in ipairs({ "min", "max" }) do
  Block[name] = function(self, options)
    options = check_options(options, "")
    local out = scores_of(self)
    native["block_" .. name](context_handle(options.context), self.handle, self.leaves, { out })
    return out
  end
end

--- fn(elements) for each block, a table of its elements; the results in a new array.
function Block:reduce(fn, options)
  options = check_options(options, "")
  local out = scores_of(self)
  native.block_reduce(
    context_handle(options.context), self.handle, self.leaves, native.Callback(fn), { out })
  return out
end

--- How many elements have a magnitude above eps (default 1e-8): total, and an i64 array per block.
function Block:nnz(eps, options)
  options = check_options(options, "")
  local counts = array("i64", self:numblk())
  local total = native.block_nnz(
    context_handle(options.context), self.handle, self.leaves, eps or native.NNZ_EPS, { counts })
  return total, counts
end

--- apply_mask(prune_mask), apply_keep_mask(keep_mask): zero blocks. apply_multiplier(multiplier):
-- scales them. A table or an array of one number per block. {into}
for method, dtype in pairs({ apply_mask = "u8", apply_keep_mask = "u8", apply_multiplier = "f64" }) do
  Block[method] = function(self, values, options)
    options = check_options(options, "into")
    native["block_" .. method](
      context_handle(options.context), self.handle, self.leaves, arrays(options.into),
      numbers(values, dtype))
  end
end

--- Copies into the leaves' arrays from `source`, one array per leaf, of any float dtype.
function Block:set_data(source, options)
  options = check_options(options, "")
  native.block_set_data(context_handle(options.context), self.handle, self.leaves, arrays(source))
end

--- The element mask of each leaf (u8): a list of new arrays.
function Block:masks(block_mask, options)
  options = check_options(options, "")
  local out = new_arrays("u8", self.sizes)
  native.block_get_masks(
    context_handle(options.context), self.handle, numbers(block_mask, "u8"), out)
  return out
end

--- The blocks as a view of the same memory; reorder = true: grid axes first.
function Block:block_view(reorder)
  return new_view(native.block_block_view(self.handle, flag(reorder)), self.leaves)
end

-- The leaves' dtype if they agree, else that of scores.
local function common_dtype(self)
  local scores = self:score_dtype()
  local dtype = self.leaves[1]:dtype()
  for _, leaf in ipairs(self.leaves) do
    if leaf:dtype() ~= dtype then
      return scores
    end
  end
  return dtype
end

--- The blocks gathered, each in one piece, in a new array.
function Block:block_view_merged(options)
  options = check_options(options, "")
  local out = array(common_dtype(self), self:numel())
  native.block_block_view_merged(
    context_handle(options.context), self.handle, self.leaves, { out })
  return out
end

--- Each block's value over its elements: a list of new arrays, one per leaf.
function Block:broadcast_block_to_element(values, options)
  options = check_options(options, "")
  values = numbers(values, "f64")
  local out = new_arrays(values and values[1]:dtype() or "f64", self.sizes)
  native.block_broadcast_block_to_element(
    context_handle(options.context), self.handle, values, out)
  return out
end

--- Views that describe a contiguous array of one number per block: in a shape that broadcasts
-- against block_view(), and in the grid's shape. dtype nil = that of scores.
for _, name in ipairs({ "broadcast_fake", "expand_block_tensor" }) do
  Block[name] = function(self, dtype)
    return new_view(native["block_" .. name](self.handle, dtype_code(dtype or self:score_dtype())), {})
  end
end

-- --- scopes ---------------------------------------------------------------------------------------

--- Groups of blocks that compete: a grid of blocks cut into scopes, or a coupling of several.
local Scope = callable(new_class("Scope"))

--- Scope(block, shape, name): blocks along each grid axis; missing extents and those <= 0 span.
function Scope.new(block, shape, name)
  check_class(block, Block, "block")
  local handle = native.scope_create(block.handle, integers(shape), name)
  return setmetatable({ handle = handle, leaves = block.leaves, sizes = block.sizes }, Scope)
end

--- The blocks of scope i of every member compete together. orders as in Block.couple.
function Scope.couple(members, orders, name)
  local handles, leaves, sizes = join(members, Scope)
  local handle = native.scope_couple(handles, flatten(orders), name)
  return setmetatable({ handle = handle, leaves = leaves, sizes = sizes }, Scope)
end

--- name(), grid_shape(), numscope(), numblk_per_scope(), numel_per_scope(), member_count(),
-- leaf_count(); score_dtype() gives "f32" or "f64".
facts(Scope, "scope_",
  "name grid_shape numscope numblk_per_scope numel_per_scope member_count leaf_count")
define_thresholds(Scope, "scope_")

--- The view of leaf `index`.
function Scope:leaf_view(index)
  return new_view(native.scope_leaf_view(self.handle, index), { self.leaves[index + 1] })
end

--- The block of member `index`.
function Scope:member_block(index)
  local handle = native.scope_member_block(self.handle, index)
  local first = 0
  for i = 0, index - 1 do
    first = first + native.block_leaf_count(native.scope_member_block(self.handle, i))
  end
  local leaves, sizes = {}, {}
  for i = 1, native.block_leaf_count(handle) do
    leaves[i], sizes[i] = self.leaves[first + i], self.sizes[first + i]
  end
  return new_block(handle, leaves, sizes)
end

--- How many blocks member `index` brings to a scope.
function Scope:member_numblk(index)
  return native.scope_member_numblk(self.handle, index)
end

--- Blocks of a scope that stay at this sparsity.
function Scope:sparsity_to_nnz(sparsity)
  return native.scope_sparsity_to_nnz(self.handle, sparsity)
end

--- Norms of blocks, arranged by scope: a new array (grid_shape..., numblk_per_scope).
function Scope:block_norms(p, options)
  options = check_options(options, "")
  local out = array(self:score_dtype(), self:numscope() * self:numblk_per_scope())
  native.scope_block_norms(context_handle(options.context), self.handle, self.leaves, p, { out })
  return out
end

--- Arranges block arrays, one per member, by scope, in a new array of their dtype.
function Scope:block_to_scope(values, options)
  options = check_options(options, "")
  values = arrays(values) or {}
  local dtype = values[1] and values[1]:dtype() or self:score_dtype()
  local out = array(dtype, self:numscope() * self:numblk_per_scope())
  native.scope_block_to_scope(context_handle(options.context), self.handle, values, { out })
  return out
end

--- The same as a view of a contiguous array of one number per block. dtype nil = that of scores.
function Scope:block_to_scope_view(reorder, dtype)
  return new_view(
    native.scope_block_to_scope_view(
      self.handle, dtype_code(dtype or self:score_dtype()), flag(reorder)), {})
end

--- Each scope's value over its blocks: a list of new arrays, one per member.
function Scope:scope_to_block(values, options)
  options = check_options(options, "")
  values = numbers(values, "f64")
  local numscope, sizes = self:numscope(), {}
  for i = 1, self:member_count() do
    sizes[i] = self:member_numblk(i - 1) * numscope
  end
  local out = new_arrays(values and values[1]:dtype() or "f64", sizes)
  native.scope_scope_to_block(context_handle(options.context), self.handle, values, out)
  return out
end

-- Values and scores of a selection: the leaves' own values if nothing else is given.
local function sources(self, options)
  local scores = numbers(options.scores, self:score_dtype())
  local values = arrays(options.values)
  if values == nil and scores == nil and options.block_mask == nil then
    values = self.leaves
  end
  return values, scores
end

--- The k-th largest score of each scope (k = 1 is the largest; a number or one per scope), in a new
-- array. {values, scores}
function Scope:kth_largest(k, options)
  options = check_options(options, "values scores")
  local values, scores = sources(self, options)
  local out = array(self:score_dtype(), self:numscope())
  native.scope_kth_largest(
    context_handle(options.context), self.handle, values, scores, integers(k), { out })
  return out
end

--- A threshold between the k-th and the next score of each scope, in a new array.
-- {values, scores, k_weight}
function Scope:kth_mid(k, options)
  options = check_options(options, "values scores k_weight")
  local values, scores = sources(self, options)
  local out = array(self:score_dtype(), self:numscope())
  native.scope_kth_mid(
    context_handle(options.context), self.handle, values, scores, integers(k),
    options.k_weight or 1, { out })
  return out
end

--- Keeps the `counts` blocks of largest norm in each scope (a number or one per scope), zeroes the
-- rest. Gives the report. {values, scores, ties = "by_position"|"keep_all", into}
function Scope:keep_top(counts, options)
  options = check_options(options, "values scores ties into")
  return report(native.scope_keep_top(
    context_handle(options.context), self.handle, self.leaves, arrays(options.into),
    integers(counts), arrays(options.values), numbers(options.scores, self:score_dtype()),
    constant("TIES_", options.ties, "by_position")))
end

--- The same selection as keep masks (u8), nothing is pruned: a list of new arrays, one per leaf, and
-- the report. With a block_mask, counts is nil. {values, scores, block_mask, ties}
function Scope:masks(counts, options)
  options = check_options(options, "values scores block_mask ties")
  local values, scores = sources(self, options)
  local out = new_arrays("u8", self.sizes)
  local values_of_report = native.scope_get_masks(
    context_handle(options.context), self.handle, values, scores,
    numbers(options.block_mask, "u8"), integers(counts),
    constant("TIES_", options.ties, "by_position"), out)
  return out, report(values_of_report)
end

-- --- schedules ------------------------------------------------------------------------------------

--- A prune rate that changes with its position.
local Schedule = new_class("Schedule")

local function new_schedule(handle, owned)
  return setmetatable({ handle = handle, owned = owned }, Schedule)
end

--- From prune_rate at 0 down to eta_min (default 0) at t_max; starts at last_epoch + 1 (default -1).
function Schedule.cosine(prune_rate, t_max, eta_min, last_epoch)
  return new_schedule(
    native.schedule_create_cosine(prune_rate, t_max, eta_min or 0, last_epoch or -1))
end

--- prune_rate (1 - t / t_max), never below 0.
function Schedule.linear(prune_rate, t_max)
  return new_schedule(native.schedule_create_linear(prune_rate, t_max))
end

--- Gradual magnitude pruning, from one sparsity to another.
function Schedule.magnitude(initial, final, t_max, t_start, interval)
  return new_schedule(native.schedule_create_magnitude(initial, final, t_max, t_start, interval))
end

--- fn(t) gives the rate.
function Schedule.custom(fn)
  local owned = callback(fn, as_it_is)
  return new_schedule(native.schedule_create_custom(owned), owned)
end

--- Moves on by one; or to position t.
function Schedule:step(t)
  if t == nil then
    native.schedule_step(self.handle)
  else
    native.schedule_step_to(self.handle, t)
  end
end

--- The number of steps so far.
facts(Schedule, "schedule_", "position")

--- The rate at the position; with `current` (magnitude only) if that is the sparsity.
function Schedule:rate(current)
  if current == nil then
    return native.schedule_rate(self.handle)
  end
  return native.schedule_rate_from(self.handle, current)
end

--- Magnitude only: the sparsity to have reached at t.
function Schedule:cumulative_sparsity(t)
  return native.schedule_cumulative_sparsity(self.handle, t)
end

-- --- maskings -------------------------------------------------------------------------------------

--- Keeps named layers sparse while you train them.
local Masking = callable(new_class("Masking"))

local LAYER_ARRAYS = { "weight", "mask", "gradient", "momentum", "adam_m1", "adam_m2" }

--- Masking(schedule, options): prune = "magnitude" ..., redistribute = "none" ..., grow = "none" ...
-- as in training.h; seed; dense_gradients (default false). Functions of the modes that need them:
--   prune_fn(layer, rate, requested), grow_fn(layer, requested)   change the layer's mask
--   prune_criterion(elements), grow_criterion(elements)           a kernel's score
--   statistic_fn(layer)                                           the layer's statistic
function Masking.new(schedule, options)
  check_class(schedule, Schedule, "schedule")
  options = check_options(options, "seed prune redistribute grow dense_gradients prune_fn"
    .. " prune_criterion statistic_fn grow_fn grow_criterion")
  local prune_fn = callback(options.prune_fn, ignored)
  local grow_fn = callback(options.grow_fn, ignored)
  local statistic_fn = callback(options.statistic_fn, as_it_is)
  local prune_criterion = options.prune_criterion and native.Callback(options.prune_criterion)
  local grow_criterion = options.grow_criterion and native.Callback(options.grow_criterion)
  local self = {
    owned = {
      schedule = schedule.owned, prune_fn = prune_fn, grow_fn = grow_fn, statistic_fn = statistic_fn,
      prune_criterion = prune_criterion, grow_criterion = grow_criterion,
    },
    arrays = {},
  }
  for _, role in ipairs(LAYER_ARRAYS) do
    self.arrays[role] = {}
  end
  self.handle = native.masking_create(
    schedule.handle, options.seed or 0, constant("PRUNE_", options.prune, "magnitude"),
    constant("REDISTRIBUTE_", options.redistribute, "none"), constant("GROW_", options.grow, "none"),
    flag(options.dense_gradients), prune_fn, prune_criterion, statistic_fn, grow_fn, grow_criterion)
  return setmetatable(self, Masking)
end

--- Adds a layer before initialisation, gives its id. Arrays: mask (u8, contiguous in the view's
-- shape), and gradient, momentum, or adam_m1 and adam_m2 where modes read them. All are kept.
function Masking:add(name, view, layer_arrays)
  check_class(view, View, "view")
  layer_arrays = check_options(layer_arrays, "mask gradient momentum adam_m1 adam_m2")
  local given = { weight = view.leaves[1] and as_array(view.leaves[1]) or false }
  for i = 2, #LAYER_ARRAYS do
    local role = LAYER_ARRAYS[i]
    given[role] = layer_arrays[role] ~= nil and as_array(layer_arrays[role])
  end
  local id = native.masking_add(self.handle, name, view.handle)
  for _, role in ipairs(LAYER_ARRAYS) do
    self.arrays[role][id + 1] = given[role]
  end
  return id
end

-- The arrays of layers that left are not needed any more.
local function forget_removed(self)
  for id = 0, self:layer_count() - 1 do
    if not self:has_layer(id) then
      for _, role in ipairs(LAYER_ARRAYS) do
        self.arrays[role][id + 1] = false
      end
    end
  end
end

--- Removes a layer by its name.
function Masking:remove(name)
  native.masking_remove(self.handle, name)
  forget_removed(self)
end

--- Removes all layers whose names contain `part`; gives how many.
function Masking:remove_matching(part)
  local removed = native.masking_remove_matching(self.handle, part)
  forget_removed(self)
  return removed
end

--- layer_count(): layers ever added. baseline(): the nonzeros that growth aims for.
-- adjusted_growth(): what the next update adds to the places it hands out.
facts(Masking, "masking_", "layer_count baseline adjusted_growth")

--- The id of a layer, -1 if there is none of this name.
function Masking:find(name)
  return native.masking_find(self.handle, name)
end

--- The name of layer `id`.
function Masking:layer_name(id)
  return native.masking_layer_name(self.handle, id)
end

--- Whether layer `id` still belongs to the masking.
function Masking:has_layer(id)
  return native.masking_has_layer(self.handle, id) == 1
end

--- Draws the first masks and applies them. {density, mode = "random" ..., draw = "exact"|"bernoulli",
-- counts (a table, one per id)}
function Masking:initialise(options)
  options = check_options(options, "density mode draw counts")
  native.masking_initialise(
    context_handle(options.context), self.handle, self.arrays.weight, self.arrays.mask,
    options.density or 0, constant("INIT_", options.mode, "random"),
    constant("DRAW_", options.draw, "exact"), options.counts)
end

--- The densities that initialisation would give: a table, one per id. {density, mode}
function Masking:densities(options)
  options = check_options(options, "density mode")
  local out = array("f64", self:layer_count())
  native.masking_densities(
    self.handle, options.density or 0, constant("INIT_", options.mode, "random"), { out })
  return out:totable()
end

-- Calls a function that takes all arrays of all layers.
local function with_layers(self, call, options, ...)
  local all = self.arrays
  return call(
    context_handle(options.context), self.handle, all.weight, all.mask, all.gradient, all.momentum,
    all.adam_m1, all.adam_m2, ...)
end

--- Zeroes what the masks forbid. what: a list of "weights" (default), "momentum", "gradients".
function Masking:apply(what, options)
  local sum = 0
  for _, name in ipairs(what or { "weights" }) do
    sum = sum + constant("APPLY_", name)
  end
  with_layers(self, native.masking_apply, check_options(options, ""), sum)
end

--- After each optimiser step: applies the masks, moves the schedule on.
function Masking:step(options)
  with_layers(self, native.masking_step, check_options(options, ""))
end

-- A table of numbers by these names; counts become integers where Lua has them.
local function named(values, names)
  local result, i = {}, 0
  for name in names:gmatch("%S+") do
    i = i + 1
    result[name] = math.tointeger and math.tointeger(values[i]) or values[i]
  end
  return result
end

--- Prunes and grows. Gives {rate, requested_removed, removed, requested_grown, grown, nonzeros,
-- residual}.
function Masking:update(options)
  local values = with_layers(self, native.masking_update, check_options(options, ""))
  return named(values, "rate requested_removed removed requested_grown grown nonzeros residual")
end

--- Of layer `id`, nil = of all: {numel, nonzeros, zeros, density, requested_density, statistic, rate,
-- requested_removed, removed, requested_grown, grown}.
function Masking:stats(id)
  return named(native.masking_stats(self.handle, id or -1),
    "numel nonzeros zeros density requested_density statistic rate requested_removed removed"
    .. " requested_grown grown")
end

--- The whole state but masks and weights, as a new u8 array.
function Masking:save()
  local blob = array("u8", native.masking_save_size(self.handle))
  native.masking_save(self.handle, { blob })
  return blob
end

--- Takes up a saved state: a u8 array or a string of bytes.
function Masking:restore(blob)
  if type(blob) == "string" then
    blob = array("u8", blob)
  end
  native.masking_restore(self.handle, { as_array(blob) })
end

-- --- library --------------------------------------------------------------------------------------

--- Version of the library that is loaded, such as 100 for 0.1.0.
sparsekit.version = native.version
--- One line for a bug report.
sparsekit.build_info = native.build_info
--- How many handles are alive in the process.
sparsekit.live_handles = native.live_handles

--- Whether contexts with this executor can be created.
function sparsekit.executor_available(name)
  return native.executor_available(constant("EXECUTOR_", name)) == 1
end

--- Where the library finds an array's first element, as a number.
function sparsekit.address(data)
  return native.address({ as_array(data) })
end

return sparsekit
