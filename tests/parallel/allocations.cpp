// In a steady state a call allocates nothing: its scratch is that of the call before.
#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "sparsekit/sparsekit.h"

static std::atomic<long> allocations{0};

// The static library's allocations come here too.
void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// That of the standard library's memory resources, too.
void *operator new(size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<size_t>(alignment);
  if (void *memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept {
  std::free(memory);
}
void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace {

void *counted_allocate(void *, size_t bytes, size_t alignment) {
  ++allocations;
  return std::aligned_alloc(alignment, bytes);
}
void counted_deallocate(void *, void *memory, size_t, size_t) {
  std::free(memory);
}

struct Handles {
  spk_context *context = nullptr;
  spk_block *block = nullptr;
  spk_scope *scope = nullptr;
};

Handles make_handles(int64_t rows, int64_t cols, const int64_t (&block_shape)[2]) {
  Handles made;
  const spk_allocator allocator = {sizeof allocator, nullptr, counted_allocate, counted_deallocate};
  spk_context_options options = {};
  options.struct_size = sizeof options;
  options.executor = SPK_EXECUTOR_SERIAL;
  options.allocator = &allocator;
  assert_int_equal(spk_context_create(&options, &made.context), SPK_OK);
  const int64_t shape[2] = {rows, cols};
  const int64_t scope_shape[2] = {1, -1};
  spk_view *view = nullptr;
  assert_int_equal(spk_view_create(SPK_F32, 2, shape, nullptr, 0, &view), SPK_OK);
  assert_int_equal(spk_block_create(view, 2, block_shape, nullptr, &made.block), SPK_OK);
  assert_int_equal(spk_scope_create(made.block, 2, scope_shape, nullptr, &made.scope), SPK_OK);
  spk_view_release(view);
  return made;
}

void release(const Handles &handles) {
  spk_scope_release(handles.scope);
  spk_block_release(handles.block);
  spk_context_release(handles.context);
}

// Each kind of operation once.
void work(const Handles &handles, std::vector<float> &weights, std::vector<float> &scores) {
  const auto numel = static_cast<int64_t>(weights.size());
  const spk_buffer leaf = {weights.data(), numel, SPK_F32, SPK_LAYOUT_VIEW, nullptr};
  const spk_buffer out = {scores.data(), spk_block_numblk(handles.block), SPK_F32, SPK_LAYOUT_VIEW,
                          nullptr};
  assert_int_equal(spk_block_norms(handles.context, handles.block, &leaf, 1, 2.0, &out), SPK_OK);
  double threshold = 0.5;
  const spk_buffer thresholds = {&threshold, 1, SPK_F64, SPK_LAYOUT_VIEW, nullptr};
  assert_int_equal(spk_block_soft_threshold(handles.context, handles.block, &leaf, nullptr, 1,
                                            &thresholds, nullptr, nullptr),
                   SPK_OK);
  assert_int_equal(spk_block_hard_threshold(handles.context, handles.block, &leaf, nullptr, 1,
                                            &thresholds, nullptr, nullptr),
                   SPK_OK);
  const int64_t kept = spk_scope_numblk_per_scope(handles.scope) / 2;
  assert_int_equal(spk_scope_keep_top(handles.context, handles.scope, &leaf, nullptr, 1, &kept, 1,
                                      nullptr, nullptr),
                   SPK_OK);
}

void assert_no_allocations(int64_t rows, int64_t cols, const int64_t (&block_shape)[2]) {
  const Handles handles = make_handles(rows, cols, block_shape);
  std::vector<float> weights(static_cast<size_t>(rows * cols), 1.5F);
  std::vector<float> scores(static_cast<size_t>(spk_block_numblk(handles.block)));
  for (int i = 0; i < 3; ++i) work(handles, weights, scores);
  const long before = allocations;
  for (int i = 0; i < 5; ++i) work(handles, weights, scores);
  const long after = allocations;
  release(handles);
  assert_int_equal(after - before, 0);
}

void small_matrix(void **) {
  assert_no_allocations(64, 64, {1, 8});
}
void many_tiles(void **) {
  assert_no_allocations(1024, 256, {1, 16});
}
void elements(void **) {
  assert_no_allocations(256, 256, {1, 1});
}
void one_long_scope(void **) {
  assert_no_allocations(1, 600000, {1, 1});
}
void large_blocks(void **) {
  assert_no_allocations(4, 70000, {1, 70000});
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(small_matrix),   cmocka_unit_test(many_tiles),   cmocka_unit_test(elements),
      cmocka_unit_test(one_long_scope), cmocka_unit_test(large_blocks),
  };
  return cmocka_run_group_tests_name("allocations", tests, nullptr, nullptr);
}
