// Prunes with SparseKit through koffi: npm install && node prune.mjs [libsparsekit.so]
//
// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import koffi from 'koffi';

const F32 = 0x220, LAYOUT_VIEW = 0;
// Rows of 8 floats, 10 apart, after one of padding.
const ROWS = 4, COLUMNS = 8, PITCH = 10, OFFSET = 1;

const Report = koffi.struct('spk_report', {
  struct_size: 'size_t', total: 'int64_t', requested: 'int64_t', achieved: 'int64_t',
  ties: 'int64_t', not_converged: 'int64_t'
});
koffi.opaque('spk_view');
koffi.opaque('spk_block');
koffi.struct('spk_buffer', {
  data: 'void *', numel: 'int64_t', dtype: 'int32_t', layout: 'int32_t', view: 'const spk_view *'
});

const library = koffi.load(process.argv[2] ?? 'libsparsekit.so.0');
const spk = {
  statusString: library.func('const char *spk_status_string(int32_t)'),
  lastErrorCopy: library.func('int32_t spk_last_error_copy(_Out_ char *, size_t, size_t *)'),
  liveHandles: library.func('int64_t spk_live_handles()'),
  viewCreate: library.func('int32_t spk_view_create(int32_t, int32_t, const int64_t *, ' +
    'const int64_t *, int64_t, _Out_ spk_view **)'),
  viewRelease: library.func('void spk_view_release(spk_view *)'),
  blockCreate: library.func('int32_t spk_block_create(const spk_view *, int32_t, ' +
    'const int64_t *, const char *, _Out_ spk_block **)'),
  blockRelease: library.func('void spk_block_release(spk_block *)'),
  pruneNm: library.func('int32_t spk_prune_nm(void *, const spk_view *, const spk_buffer *, ' +
    'const spk_buffer *, int32_t, int64_t, int64_t, _Inout_ spk_report *)'),
  softThreshold: library.func('int32_t spk_block_soft_threshold(void *, const spk_block *, ' +
    'const spk_buffer *, const spk_buffer *, int32_t, const spk_buffer *, const void *, ' +
    '_Inout_ spk_report *)')
};

// Throws what a failing call says.
function check(status) {
  if (status === 0) return;
  const message = Buffer.alloc(512);
  spk.lastErrorCopy(message, message.length, null);
  const text = message.toString('utf8', 0, message.indexOf(0));
  throw new Error(`${spk.statusString(status)}: ${text}`);
}

// A spk_buffer over a Float32Array, whose memory the library works on.
function buffer(array) {
  return { data: array, numel: array.length, dtype: F32, layout: LAYOUT_VIEW, view: null };
}

function createView(shape, stride, offset) {
  const out = [null];
  check(spk.viewCreate(F32, shape.length, shape, stride, offset, out));
  return out[0];
}

function createBlock(view, shape, name) {
  const out = [null];
  check(spk.blockCreate(view, shape.length, shape, name, out));
  return out[0];
}

function newReport() {
  return { struct_size: koffi.sizeof(Report), total: 0, requested: 0, achieved: 0, ties: 0,
           not_converged: 0 };
}

// Of every four in a row the two of largest magnitude; of equal ones the first.
function expected24(weights) {
  const result = Array.from(weights);
  for (let row = 0; row < ROWS; ++row) {
    for (let column = 0; column < COLUMNS; column += 4) {
      const group = [0, 1, 2, 3].map(i => OFFSET + row * PITCH + column + i);
      group.sort((i, j) => Math.abs(weights[j]) - Math.abs(weights[i]));
      for (const i of group.slice(2)) result[i] = 0;
    }
  }
  return result;
}

// Each row w becomes w max(0, 1 - t / ||w||).
function expectedSoft(weights, thresholds) {
  const result = Array.from(weights);
  thresholds.forEach((threshold, row) => {
    const start = OFFSET + row * PITCH;
    const norm = Math.hypot(...weights.subarray(start, start + COLUMNS));
    for (let i = start; i < start + COLUMNS; ++i) result[i] *= Math.max(0, 1 - threshold / norm);
  });
  return result;
}

function requireClose(got, expected, what) {
  assert.equal(got.length, expected.length);
  got.forEach((value, i) => {
    assert.ok(Math.abs(value - expected[i]) <= 1e-6 * Math.abs(expected[i]), `${what}: ${i}`);
  });
}

// A strided 4 x 8 matrix; the padding around it must stay as it is.
const weights = Float32Array.from({ length: ROWS * PITCH }, (_, i) => (37 * i % 41 - 20) / 4);
const view = createView([ROWS, COLUMNS], [PITCH, 1], OFFSET);

// 2:4 along the rows, in place.
let expected = expected24(weights);
const report = newReport();
check(spk.pruneNm(null, view, buffer(weights), null, 1, 2, 4, report));
requireClose(weights, expected, '2:4');
console.log(`2:4: kept ${report.achieved} of ${report.total} elements`);

// Group soft thresholding: each row is a block with a threshold of its own; the third row dies.
const thresholds = Float32Array.of(0.5, 1, 100, 2);
expected = expectedSoft(weights, thresholds);
const block = createBlock(view, [1, COLUMNS], 'rows');
check(spk.softThreshold(null, block, buffer(weights), null, 1, buffer(thresholds), null, report));
requireClose(weights, expected, 'soft threshold');
assert.deepEqual([report.total, report.achieved], [ROWS, ROWS - 1]);
console.log(`soft threshold: kept ${report.achieved} of ${report.total} rows`);

// Blocks of three columns do not divide rows of eight.
assert.throws(() => createBlock(view, [1, 3], 'odd'), error => {
  console.log(`as it should be: ${error.message}`);
  return error.message.startsWith('SPK_SHAPE_MISMATCH: ');
});

spk.blockRelease(block);
spk.viewRelease(view);
assert.equal(Number(spk.liveHandles()), 0, 'handles are still alive');
