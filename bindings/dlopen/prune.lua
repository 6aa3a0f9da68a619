-- Prunes with SparseKit through LuaJIT's ffi: luajit prune.lua [libsparsekit.so]
--
-- SPDX-License-Identifier: Apache-2.0
local ffi = require("ffi")

ffi.cdef [[
typedef struct spk_view spk_view;
typedef struct spk_block spk_block;
typedef struct spk_buffer {
  void *data;
  int64_t numel;
  int32_t dtype;
  int32_t layout;
  const spk_view *view;
} spk_buffer;
typedef struct spk_report {
  size_t struct_size;
  int64_t total, requested, achieved, ties, not_converged;
} spk_report;

const char *spk_status_string(int32_t status);
int32_t spk_last_error_copy(char *text, size_t capacity, size_t *length);
int64_t spk_live_handles(void);
int32_t spk_view_create(int32_t dtype, int32_t ndim, const int64_t *shape, const int64_t *stride,
                        int64_t offset, spk_view **out);
void spk_view_release(spk_view *view);
int32_t spk_block_create(const spk_view *view, int32_t ndim, const int64_t *shape,
                         const char *name, spk_block **out);
void spk_block_release(spk_block *block);
int32_t spk_prune_nm(void *context, const spk_view *view, const spk_buffer *weights,
                     const spk_buffer *into, int32_t axis, int64_t n, int64_t m,
                     spk_report *report);
int32_t spk_block_soft_threshold(void *context, const spk_block *block, const spk_buffer *leaves,
                                 const spk_buffer *into, int32_t nleaves,
                                 const spk_buffer *thresholds, const void *options,
                                 spk_report *report);
]]

local F32, LAYOUT_VIEW = 0x220, 0
-- Rows of 8 floats, 10 apart, after one of padding.
local ROWS, COLUMNS, PITCH, OFFSET = 4, 8, 10, 1
local LENGTH = ROWS * PITCH

local spk = ffi.load(arg[1] or "libsparsekit.so.0")

-- Raises what a failing call says.
local function check(status)
  if status == 0 then return end
  local message = ffi.new("char[512]")
  spk.spk_last_error_copy(message, 512, nil)
  error(ffi.string(spk.spk_status_string(status)) .. ": " .. ffi.string(message), 0)
end

-- The array must live until the calls with this buffer are over.
local function buffer(array, length)
  return ffi.new("spk_buffer", { array, length, F32, LAYOUT_VIEW, nil })
end

local function create_view(shape, stride, offset)
  local out = ffi.new("spk_view *[1]")
  check(spk.spk_view_create(F32, #shape, ffi.new("int64_t[?]", #shape, shape),
                            ffi.new("int64_t[?]", #shape, stride), offset, out))
  return ffi.gc(out[0], spk.spk_view_release)
end

local function create_block(view, shape, name)
  local out = ffi.new("spk_block *[1]")
  check(spk.spk_block_create(view, #shape, ffi.new("int64_t[?]", #shape, shape), name, out))
  return ffi.gc(out[0], spk.spk_block_release)
end

local function new_report()
  return ffi.new("spk_report", { ffi.sizeof("spk_report") })
end

local function copy(array, length)
  local result = ffi.new("double[?]", length)
  for i = 0, length - 1 do result[i] = array[i] end
  return result
end

-- Of every four in a row the two of largest magnitude; of equal ones the first.
local function expected_2_4(weights)
  local result = copy(weights, LENGTH)
  for row = 0, ROWS - 1 do
    for group = OFFSET + row * PITCH, OFFSET + row * PITCH + COLUMNS - 1, 4 do
      for i = group, group + 3 do
        local larger = 0
        for j = group, group + 3 do
          local mine, other = math.abs(weights[i]), math.abs(weights[j])
          if other > mine or (other == mine and j < i) then larger = larger + 1 end
        end
        if larger >= 2 then result[i] = 0 end
      end
    end
  end
  return result
end

-- Each row w becomes w max(0, 1 - t / ||w||).
local function expected_soft(weights, thresholds)
  local result = copy(weights, LENGTH)
  for row = 0, ROWS - 1 do
    local start, squares = OFFSET + row * PITCH, 0
    for i = start, start + COLUMNS - 1 do squares = squares + weights[i] ^ 2 end
    local factor = math.max(0, 1 - thresholds[row] / math.sqrt(squares))
    for i = start, start + COLUMNS - 1 do result[i] = result[i] * factor end
  end
  return result
end

local function require_close(got, expected, what)
  for i = 0, LENGTH - 1 do
    assert(math.abs(got[i] - expected[i]) <= 1e-6 * math.abs(expected[i]), "wrong: " .. what)
  end
end

-- A strided 4 x 8 matrix; the padding around it must stay as it is.
local weights = ffi.new("float[?]", LENGTH)
for i = 0, LENGTH - 1 do weights[i] = (37 * i % 41 - 20) / 4 end
local leaf = buffer(weights, LENGTH)
local view = create_view({ ROWS, COLUMNS }, { PITCH, 1 }, OFFSET)

-- 2:4 along the rows, in place.
local expected = expected_2_4(weights)
local report = new_report()
check(spk.spk_prune_nm(nil, view, leaf, nil, 1, 2, 4, report))
require_close(weights, expected, "2:4")
print(("2:4: kept %d of %d elements"):format(tonumber(report.achieved), tonumber(report.total)))

-- Group soft thresholding: each row is a block with a threshold of its own; the third row dies.
local thresholds = ffi.new("float[4]", { 0.5, 1, 100, 2 })
expected = expected_soft(weights, thresholds)
local block = create_block(view, { 1, COLUMNS }, "rows")
check(spk.spk_block_soft_threshold(nil, block, leaf, nil, 1, buffer(thresholds, ROWS), nil, report))
require_close(weights, expected, "soft threshold")
assert(report.total == ROWS and report.achieved == ROWS - 1, "wrong: report")
print(("soft threshold: kept %d of %d rows"):format(tonumber(report.achieved),
                                                     tonumber(report.total)))

-- Blocks of three columns do not divide rows of eight.
local done, message = pcall(create_block, view, { 1, 3 }, "odd")
assert(not done and message:find("^SPK_SHAPE_MISMATCH: "), "wrong: no such error")
print("as it should be: " .. message)

-- ffi.gc would release them some time; this does it now.
spk.spk_block_release(ffi.gc(block, nil))
spk.spk_view_release(ffi.gc(view, nil))
assert(spk.spk_live_handles() == 0, "wrong: handles are still alive")
