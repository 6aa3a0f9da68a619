/* Uses SparseKit as a plug-in host or a foreign runtime does: no header, no linking, only dlopen.
 * What it needs of the interface it declares itself. Opens the library that argv[1] names, prunes
 * to 2:4 twice over: a small matrix, whose result is known, and one that is large enough for
 * several threads. Then closes the library while its threads may still be idling, and starts again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, F32 = 0x220, LAYOUT_VIEW = 0, THREADS = 4, BIG = 2048 };

struct buffer {
  void *data;
  int64_t numel;
  int32_t dtype;
  int32_t layout;
  const void *view;
};

struct context_options {
  size_t struct_size;
  int32_t executor;
  int32_t threads;
  const void *host;
  const void *allocator;
  int32_t (*progress)(void *user, int64_t done, int64_t total);
  void *progress_user;
};

/* The functions of the library that this program calls, found by name. */
static struct {
  int32_t (*context_create)(const struct context_options *, void **);
  void (*context_release)(void *);
  int32_t (*view_create)(int32_t, int32_t, const int64_t *, const int64_t *, int64_t, void **);
  void (*view_release)(void *);
  int32_t (*prune_nm)(void *, const void *, const struct buffer *, const struct buffer *, int32_t,
                      int64_t, int64_t, void *);
  int32_t (*last_error_copy)(char *, size_t, size_t *);
  int64_t (*live_handles)(void);
} spk;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

/* Copies the address, since ISO C has no cast from an object pointer to a function pointer. */
static void find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) fail(name, dlerror());
  memcpy(function, &symbol, sizeof symbol);
}

static void *open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail("dlopen", dlerror());
  find(library, "spk_context_create", &spk.context_create);
  find(library, "spk_context_release", &spk.context_release);
  find(library, "spk_view_create", &spk.view_create);
  find(library, "spk_view_release", &spk.view_release);
  find(library, "spk_prune_nm", &spk.prune_nm);
  find(library, "spk_last_error_copy", &spk.last_error_copy);
  find(library, "spk_live_handles", &spk.live_handles);
  return library;
}

static void check(int32_t status, const char *call) {
  if (status == OK) return;
  char message[512];
  spk.last_error_copy(message, sizeof message, NULL);
  fail(call, message);
}

/* Prunes a rows x columns matrix along its rows and counts what is left. */
static int64_t prune(void *context, float *data, int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  struct buffer weights = {data, rows * columns, F32, LAYOUT_VIEW, NULL};
  void *view = NULL;
  check(spk.view_create(F32, 2, shape, NULL, 0, &view), "spk_view_create");
  check(spk.prune_nm(context, view, &weights, NULL, 1, 2, 4, NULL), "spk_prune_nm");
  spk.view_release(view);
  int64_t kept = 0;
  for (int64_t i = 0; i < rows * columns; ++i) kept += data[i] != 0.0f;
  return kept;
}

static void prune_small(void) {
  float data[8] = {1, -2, 3, -4, 8, 7, 6, 5};
  const float expected[8] = {0, 0, 3, -4, 8, 7, 0, 0};
  prune(NULL, data, 2, 4);
  if (memcmp(data, expected, sizeof data) != 0) fail("small matrix", "wrong values");
}

static void prune_big(void) {
  struct context_options options = {.struct_size = sizeof options, .threads = THREADS};
  void *context = NULL;
  check(spk.context_create(&options, &context), "spk_context_create");
  float *data = malloc(sizeof(float) * BIG * BIG);
  if (data == NULL) fail("big matrix", "out of memory");
  for (int64_t i = 0; i < BIG * BIG; ++i) data[i] = (float)(i * 37 % 101 + 1);
  int64_t kept = prune(context, data, BIG, BIG);
  free(data);
  spk.context_release(context);
  if (kept != BIG * BIG / 2) fail("big matrix", "wrong count");
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage", "dlopen_demo libsparsekit.so");
  for (int round = 0; round < 2; ++round) {
    void *library = open_library(argv[1]);
    prune_small();
    prune_big();
    if (spk.live_handles() != 0) fail("spk_live_handles", "handles are still alive");
    if (dlclose(library) != 0) fail("dlclose", dlerror());
  }
  printf("2:4 as expected, opened and closed twice\n");
  return EXIT_SUCCESS;
}
