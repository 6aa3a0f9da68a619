/*
 * The conformance driver of C: reads cases.tsv, makes the calls, writes what they gave. See
 * bindings/conformance/README.md, which says what each command means.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdbool.h>

#include "../swig/flat.h"

enum { MOST_ARGUMENTS = 24, MOST_BUFFERS = 64, MOST_THINGS = 256, MOST_TEXT = 4096 };
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* --- what names stand for ----------------------------------------------------------------------- */

typedef struct array {
  void *data;
  int64_t numel;
  int32_t dtype;
} array;

enum kind { ARRAY, VIEW, BLOCK, SCOPE, CONTEXT, SCHEDULE, MASKING };

/* The arrays of one masked layer; NULL where none was given. */
enum { WEIGHT, MASK, GRADIENT, MOMENTUM, ADAM_M1, ADAM_M2, LAYER_ARRAYS };

/* A handle, and the arrays that go with it: one per leaf, or LAYER_ARRAYS per layer. */
typedef struct thing {
  char name[64];
  enum kind kind;
  void *handle;
  array array;
  const array *arrays[MOST_BUFFERS];
  int32_t count;
  flat_callback function;
} thing;

static struct {
  thing things[MOST_THINGS];
  int count;
  char case_name[64];
  const char *cases;
  const char *results;
  /* A callback "threw": C has no exceptions, so it leaves a note. */
  bool thrown;
} state;

/* One line of cases.tsv, and its result. */
typedef struct step {
  char *positional[MOST_ARGUMENTS];
  int count;
  char *keys[MOST_ARGUMENTS];
  char *values[MOST_ARGUMENTS];
  int options;
  char result[MOST_TEXT];
} step;

static void die(const char *what, const char *name) {
  fprintf(stderr, "%s: %s: %s\n", state.case_name, what, name);
  exit(2);
}

static thing *find(const char *name, enum kind kind) {
  for (int i = state.count; i-- > 0;) {
    thing *found = &state.things[i];
    if (strcmp(found->name, name) == 0 && found->kind == kind) return found;
  }
  die("no such name", name);
  return NULL;
}

static thing *make(const char *name, enum kind kind) {
  if (state.count == MOST_THINGS) die("too many names", name);
  thing *made = &state.things[state.count++];
  memset(made, 0, sizeof *made);
  snprintf(made->name, sizeof made->name, "%s", name);
  made->kind = kind;
  return made;
}

/* The newest handle of this name. */
static thing *handle_of(const char *name) {
  for (int i = state.count; i-- > 0;) {
    if (strcmp(state.things[i].name, name) == 0 && state.things[i].kind != ARRAY)
      return &state.things[i];
  }
  die("no such handle", name);
  return NULL;
}

static void release(thing *one) {
  switch (one->kind) {
    case ARRAY:
      free(one->array.data);
      one->array.data = NULL;
      break;
    case VIEW:
      spk_view_release((spk_view *)one->handle);
      break;
    case BLOCK:
      spk_block_release((spk_block *)one->handle);
      break;
    case SCOPE:
      spk_scope_release((spk_scope *)one->handle);
      break;
    case CONTEXT:
      spk_context_release((spk_context *)one->handle);
      break;
    case SCHEDULE:
      spk_schedule_release((spk_schedule *)one->handle);
      break;
    case MASKING:
      spk_masking_release((spk_masking *)one->handle);
      break;
  }
  one->handle = NULL;
}

/* Parents first, as the format asks; memory last. */
static void end_case(void) {
  for (int i = 0; i < state.count; ++i) {
    if (state.things[i].kind != ARRAY) release(&state.things[i]);
  }
  for (int i = 0; i < state.count; ++i) release(&state.things[i]);
  state.count = 0;
}

/* --- arguments ---------------------------------------------------------------------------------- */

static const char *positional(const step *s, int index) {
  if (index >= s->count) die("too few arguments", s->positional[0]);
  return s->positional[index];
}

/* NULL if it is not given. */
static const char *option(const step *s, const char *key) {
  for (int i = 0; i < s->options; ++i) {
    if (strcmp(s->keys[i], key) == 0) return s->values[i];
  }
  return NULL;
}

static double number(const step *s, const char *key, double otherwise) {
  const char *text = option(s, key);
  return text == NULL ? otherwise : strtod(text, NULL);
}

static int64_t integer(const step *s, const char *key, int64_t otherwise) {
  const char *text = option(s, key);
  return text == NULL ? otherwise : strtoll(text, NULL, 10);
}

typedef struct integers {
  int64_t values[MOST_BUFFERS * SPK_MAX_NDIM];
  int32_t count;
} integers;

/* Lists of lists come one after the other. */
static integers list(const step *s, const char *key) {
  integers found = {{0}, 0};
  const char *text = option(s, key);
  while (text != NULL && *text != 0) {
    char *end = NULL;
    found.values[found.count++] = strtoll(text, &end, 10);
    text = *end == 0 ? end : end + 1;
  }
  return found;
}

/* The position of a name in a table. */
static int32_t named(const char *const *names, int count, const char *name) {
  for (int32_t i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0) return i;
  }
  die("unknown name", name);
  return 0;
}

static int32_t choice(const step *s, const char *key, const char *const *names, int count) {
  const char *name = option(s, key);
  return name == NULL ? 0 : named(names, count, name);
}

static const char *const dtype_names[] = {"f32", "f64", "f16", "bf16", "u8", "i64"};
static const int32_t dtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16, SPK_U8, SPK_I64};

static int32_t dtype_named(const char *name) {
  return dtypes[named(dtype_names, COUNT(dtypes), name)];
}

static const char *name_of_dtype(int32_t dtype) {
  for (int i = 0; i < COUNT(dtypes); ++i) {
    if (dtypes[i] == dtype) return dtype_names[i];
  }
  return "none";
}

static spk_context *context_of(const step *s) {
  const char *name = option(s, "context");
  return name == NULL ? NULL : (spk_context *)find(name, CONTEXT)->handle;
}

/* --- arrays and lists of names ------------------------------------------------------------------ */

static array new_array(int32_t dtype, int64_t numel) {
  array made = {NULL, numel < 0 ? 0 : numel, dtype};
  made.data = calloc((size_t)made.numel + 1, (size_t)(dtype & 0xff) / 8);
  if (made.data == NULL) die("no memory", "array");
  return made;
}

static spk_buffer buffer_of(const array *one) {
  const spk_buffer none = {NULL, 0, 0, 0, NULL};
  const spk_buffer given = {one == NULL ? NULL : one->data, one == NULL ? 0 : one->numel,
                            one == NULL ? 0 : one->dtype, SPK_LAYOUT_VIEW, NULL};
  return one == NULL ? none : given;
}

typedef struct buffers {
  spk_buffer list[MOST_BUFFERS];
  int32_t count;
} buffers;

/* Calls visit for each name of a list. */
static void for_each_name(const char *names, void (*visit)(const char *name, void *user),
                          void *user) {
  char copy[MOST_TEXT];
  char *rest = copy;
  snprintf(copy, sizeof copy, "%s", names == NULL ? "" : names);
  for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
    visit(name, user);
}

static void add_buffer(const char *name, void *user) {
  buffers *all = (buffers *)user;
  all->list[all->count++] = buffer_of(&find(name, ARRAY)->array);
}

static buffers buffers_named(const step *s, const char *key) {
  buffers all = {{{NULL, 0, 0, 0, NULL}}, 0};
  for_each_name(option(s, key), add_buffer, &all);
  return all;
}

static buffers buffers_with(const thing *owner) {
  buffers all = {{{NULL, 0, 0, 0, NULL}}, 0};
  for (int32_t i = 0; i < owner->count; ++i) all.list[all.count++] = buffer_of(owner->arrays[i]);
  return all;
}

/* Arrays that a call is to give: made before it, and named if it succeeds. */
typedef struct outputs {
  array arrays[MOST_BUFFERS];
  buffers buffers;
} outputs;

static void add_output(outputs *all, int32_t dtype, int64_t numel) {
  all->arrays[all->buffers.count] = new_array(dtype, numel);
  all->buffers.list[all->buffers.count] = buffer_of(&all->arrays[all->buffers.count]);
  ++all->buffers.count;
}

typedef struct naming {
  outputs *all;
  int32_t next;
} naming;

static void name_output(const char *name, void *user) {
  naming *at = (naming *)user;
  make(name, ARRAY)->array = at->all->arrays[at->next++];
}

static void give(const step *s, outputs *all) {
  naming at = {all, 0};
  if (flat_error.status == SPK_OK && !state.thrown)
    for_each_name(option(s, "out"), name_output, &at);
  for (int32_t i = at.next; i < all->buffers.count; ++i) free(all->arrays[i].data);
}

/* --- results ------------------------------------------------------------------------------------ */

static void say_ints(step *s, flat_ints found) {
  int at = snprintf(s->result, sizeof s->result, "ints ");
  for (int32_t i = 0; i < found.count; ++i) {
    at += snprintf(s->result + at, sizeof s->result - (size_t)at, "%s%" PRId64, i == 0 ? "" : ",",
                   found.values[i]);
  }
}

static void say_int(step *s, int64_t found) {
  snprintf(s->result, sizeof s->result, "ints %" PRId64, found);
}

static void say_numbers(step *s, const double *found, int64_t count) {
  int at = snprintf(s->result, sizeof s->result, "numbers ");
  for (int64_t i = 0; i < count; ++i) {
    at += snprintf(s->result + at, sizeof s->result - (size_t)at, "%s%.17g", i == 0 ? "" : ",",
                   found[i]);
  }
}

static void say_text(step *s, const char *text) {
  snprintf(s->result, sizeof s->result, "text %s", text);
}

/* The text of a view that a call gave, which is released. */
static void say_view(step *s, spk_view *view) {
  if (view != NULL) say_text(s, flat_view_format(view));
  spk_view_release(view);
}

/* --- functions ---------------------------------------------------------------------------------- */

static int32_t sums(void *user, const double *numbers, int64_t count, double *result) {
  (void)user;
  *result = 0;
  for (int64_t i = 0; i < count; ++i) *result += numbers[i];
  return 0;
}

static int32_t throws(void *user, const double *numbers, int64_t count, double *result) {
  (void)user, (void)numbers, (void)count, (void)result;
  state.thrown = true;
  return 1;
}

static int32_t stops(void *user, const double *numbers, int64_t count, double *result) {
  (void)user, (void)numbers, (void)count, (void)result;
  return 1;
}

static int32_t goes_on(void *user, const double *numbers, int64_t count, double *result) {
  (void)user, (void)numbers, (void)count;
  *result = 0;
  return 0;
}

static int32_t halves(void *user, const double *numbers, int64_t count, double *result) {
  (void)user, (void)count;
  *result = 1 / (2 + numbers[0]);
  return 0;
}

/* Turns the first `requested` bytes of a layer's mask that are `from` around. */
static void turn(const thing *masking, int32_t layer, int64_t requested, uint8_t from) {
  const array *mask = masking->arrays[layer * LAYER_ARRAYS + MASK];
  uint8_t *bytes = (uint8_t *)mask->data;
  for (int64_t i = 0; i < mask->numel && requested > 0; ++i) {
    if (bytes[i] != from) continue;
    bytes[i] = !from;
    --requested;
  }
}

static int32_t prunes(void *user, const double *numbers, int64_t count, double *result) {
  (void)count, (void)result;
  turn((const thing *)user, (int32_t)numbers[0], (int64_t)numbers[2], 1);
  return 0;
}

static int32_t grows(void *user, const double *numbers, int64_t count, double *result) {
  (void)count, (void)result;
  turn((const thing *)user, (int32_t)numbers[0], (int64_t)numbers[1], 0);
  return 0;
}

static int32_t tells_statistic(void *user, const double *numbers, int64_t count, double *result) {
  (void)user, (void)count;
  *result = 1 + numbers[0];
  return 0;
}

/* --- commands: arrays, contexts, views ---------------------------------------------------------- */

static FILE *open_file(const char *folder, const char *part, const char *name, const char *mode) {
  char path[MOST_TEXT];
  snprintf(path, sizeof path, "%s/%s%s", folder, part, name);
  FILE *file = fopen(path, mode);
  if (file == NULL) die("cannot open", path);
  return file;
}

static void do_array(step *s) {
  FILE *file = open_file(state.cases, "data/", positional(s, 3), "rb");
  const int32_t dtype = dtype_named(positional(s, 2));
  const size_t size = (size_t)(dtype & 0xff) / 8;
  fseek(file, 0, SEEK_END);
  array made = new_array(dtype, ftell(file) / (long)size);
  rewind(file);
  if (fread(made.data, size, (size_t)made.numel, file) != (size_t)made.numel)
    die("cannot read", positional(s, 3));
  fclose(file);
  make(positional(s, 1), ARRAY)->array = made;
}

static void do_zeros(step *s) {
  const int64_t numel = strtoll(positional(s, 3), NULL, 10);
  make(positional(s, 1), ARRAY)->array = new_array(dtype_named(positional(s, 2)), numel);
}

static void do_readonly(step *s) {
  say_text(s, "unsupported");
}

static void do_save(step *s) {
  char name[MOST_TEXT];
  const array *one = &find(positional(s, 1), ARRAY)->array;
  snprintf(name, sizeof name, "%s.%s.bin", state.case_name, positional(s, 1));
  FILE *file = open_file(state.results, "", name, "wb");
  fwrite(one->data, (size_t)(one->dtype & 0xff) / 8, (size_t)one->numel, file);
  fclose(file);
}

static void do_address(step *s) {
  const array *one = &find(positional(s, 1), ARRAY)->array;
  const spk_buffer buffer = buffer_of(one);
  say_int(s, flat_address(&buffer, 1) == (int64_t)(intptr_t)one->data);
}

static void do_context(step *s) {
  static const char *const executors[] = {"default", "serial", "tbb", "openmp"};
  static const char *const kinds[] = {"none", "cancel", "throw", "count"};
  static const flat_function functions[] = {NULL, stops, throws, goes_on};
  const int32_t progress = choice(s, "progress", kinds, COUNT(kinds));
  thing *made = make(positional(s, 1), CONTEXT);
  made->function.function = functions[progress];
  made->handle =
      flat_context_create(choice(s, "executor", executors, COUNT(executors)),
                          (int32_t)integer(s, "threads", 0), progress ? &made->function : NULL);
}

static void do_view(step *s) {
  const int32_t dtype = dtype_named(positional(s, 2));
  const array *data = &find(positional(s, 3), ARRAY)->array;
  const integers shape = list(s, "shape");
  const integers stride = list(s, "stride");
  spk_view *view = s->count > 4 ? flat_view_parse(dtype, positional(s, 4))
                                : flat_view_create(dtype, shape.values, shape.count, stride.values,
                                                   stride.count, integer(s, "offset", 0));
  if (view == NULL) return;
  thing *made = make(positional(s, 1), VIEW);
  made->handle = view;
  made->arrays[made->count++] = data;
}

static spk_view *view_of(const step *s) {
  return (spk_view *)find(positional(s, 1), VIEW)->handle;
}

static void do_format(step *s) {
  say_text(s, flat_view_format(view_of(s)));
}
static void do_dtype(step *s) {
  say_text(s, name_of_dtype(flat_view_dtype(view_of(s))));
}
static void do_shape(step *s) {
  say_ints(s, flat_view_shape(view_of(s)));
}
static void do_stride(step *s) {
  say_ints(s, flat_view_stride(view_of(s)));
}
static void do_offset(step *s) {
  say_int(s, flat_view_offset(view_of(s)));
}
static void do_cosize(step *s) {
  say_int(s, flat_view_cosize(view_of(s)));
}
static void do_linear_offset(step *s) {
  const integers index = list(s, "index");
  say_int(s, flat_view_linear_offset(view_of(s), index.values, index.count));
}
static void do_to_param_rc(step *s) {
  const integers index = list(s, "index");
  say_ints(s, flat_view_to_param_rc(view_of(s), index.values, index.count, integer(s, "cols", 0)));
}

static void do_view_block_view(step *s) {
  const integers shape = list(s, "shape");
  say_view(s, flat_view_block_view_of(view_of(s), shape.values, shape.count,
                                      (int32_t)integer(s, "reorder", 0)));
}

static void do_view_merged(step *s) {
  const thing *view = find(positional(s, 1), VIEW);
  const buffers leaf = buffers_with(view);
  const integers shape = list(s, "shape");
  outputs out = {0};
  add_output(&out, flat_view_dtype(view_of(s)), flat_view_numel(view_of(s)));
  flat_view_block_view_merged(context_of(s), view_of(s), leaf.list, leaf.count, shape.values,
                              shape.count, out.buffers.list, out.buffers.count);
  give(s, &out);
}

static void do_view_broadcast(step *s) {
  const buffers values = buffers_named(s, "values");
  const integers shape = list(s, "shape");
  outputs out = {0};
  add_output(&out, values.list[0].dtype, flat_view_numel(view_of(s)));
  flat_view_broadcast_block_to_element(context_of(s), view_of(s), shape.values, shape.count,
                                       values.list, values.count, out.buffers.list,
                                       out.buffers.count);
  give(s, &out);
}

typedef void (*view_writer)(spk_context *, spk_view *, const spk_buffer *, int32_t,
                            const spk_buffer *, int32_t, const int64_t *, int32_t,
                            const spk_buffer *, int32_t);

static void write_view(step *s, view_writer call, const char *key) {
  const buffers leaf = buffers_with(find(positional(s, 1), VIEW));
  const buffers into = buffers_named(s, "into");
  const buffers given = buffers_named(s, key);
  const integers shape = list(s, "shape");
  call(context_of(s), view_of(s), leaf.list, leaf.count, into.list, into.count, shape.values,
       shape.count, given.list, given.count);
}

static void do_view_apply_mask(step *s) {
  write_view(s, flat_view_apply_mask, "mask");
}
static void do_view_apply_keep_mask(step *s) {
  write_view(s, flat_view_apply_keep_mask, "mask");
}
static void do_view_apply_multiplier(step *s) {
  write_view(s, flat_view_apply_multiplier, "multiplier");
}

/* --- commands: blocks --------------------------------------------------------------------------- */

static spk_block *block_of(const step *s) {
  return (spk_block *)find(positional(s, 1), BLOCK)->handle;
}

/* Gives a new handle its name, and the arrays of its parts. */
static thing *own(const step *s, enum kind kind, void *handle) {
  if (handle == NULL) return NULL;
  thing *made = make(positional(s, 1), kind);
  made->handle = handle;
  return made;
}

static void take_arrays(thing *made, const thing *part) {
  for (int32_t i = 0; made != NULL && i < part->count; ++i)
    made->arrays[made->count++] = part->arrays[i];
}

static void do_block(step *s) {
  const thing *view = find(positional(s, 2), VIEW);
  const integers shape = list(s, "shape");
  spk_block *block =
      flat_block_create((spk_view *)view->handle, shape.values, shape.count, option(s, "name"));
  take_arrays(own(s, BLOCK, block), view);
}

typedef struct members {
  enum kind kind;
  const thing *parts[MOST_BUFFERS];
  void *handles[MOST_BUFFERS];
  int32_t count;
} members;

static void add_member(const char *name, void *user) {
  members *all = (members *)user;
  all->parts[all->count] = find(name, all->kind);
  all->handles[all->count] = all->parts[all->count]->handle;
  ++all->count;
}

static members members_of(const step *s, enum kind kind) {
  members all = {kind, {NULL}, {NULL}, 0};
  for_each_name(option(s, "members"), add_member, &all);
  return all;
}

static void do_couple(step *s) {
  const members all = members_of(s, BLOCK);
  const integers orders = list(s, "orders");
  thing *made = own(s, BLOCK,
                    flat_block_couple((spk_block *const *)all.handles, all.count, orders.values,
                                      orders.count, option(s, "name")));
  for (int32_t i = 0; i < all.count; ++i) take_arrays(made, all.parts[i]);
}

static void do_numblk(step *s) {
  say_int(s, flat_block_numblk(block_of(s)));
}
static void do_numel_per_block(step *s) {
  say_int(s, flat_block_numel_per_block(block_of(s)));
}
static void do_leaf(step *s) {
  const int32_t index = (int32_t)strtol(positional(s, 2), NULL, 10);
  say_ints(s, flat_block_leaf_shape(block_of(s), index));
}

/* Facts that blocks and scopes, or views and blocks, share. */
static bool is_scope(const step *s) {
  return handle_of(positional(s, 1))->kind == SCOPE;
}
static spk_scope *scope_of(const step *s) {
  return (spk_scope *)find(positional(s, 1), SCOPE)->handle;
}
static void do_grid_shape(step *s) {
  say_ints(s,
           is_scope(s) ? flat_scope_grid_shape(scope_of(s)) : flat_block_grid_shape(block_of(s)));
}
static void do_score_dtype(step *s) {
  say_text(s, name_of_dtype(is_scope(s) ? flat_scope_score_dtype(scope_of(s))
                                        : flat_block_score_dtype(block_of(s))));
}
static void do_leaf_count(step *s) {
  say_int(s, is_scope(s) ? flat_scope_leaf_count(scope_of(s)) : flat_block_leaf_count(block_of(s)));
}
static void do_name(step *s) {
  say_text(s, is_scope(s) ? flat_scope_name(scope_of(s)) : flat_block_name(block_of(s)));
}
static void do_numel(step *s) {
  const bool is_view = handle_of(positional(s, 1))->kind == VIEW;
  say_int(s, is_view ? flat_view_numel(view_of(s)) : flat_block_numel(block_of(s)));
}

/* The leaves of a block or scope, or other arrays if they are given. */
static buffers leaves_of(const step *s) {
  const buffers values = buffers_named(s, "values");
  return values.count > 0 ? values : buffers_with(handle_of(positional(s, 1)));
}

/* One score per block. */
static outputs scores_of_blocks(const step *s) {
  outputs out = {0};
  add_output(&out, flat_block_score_dtype(block_of(s)), flat_block_numblk(block_of(s)));
  return out;
}

static void do_norms(step *s) {
  const buffers leaves = leaves_of(s);
  outputs out = scores_of_blocks(s);
  flat_block_norms(context_of(s), block_of(s), leaves.list, leaves.count, number(s, "p", 2),
                   out.buffers.list, out.buffers.count);
  give(s, &out);
}

static void do_min(step *s) {
  const buffers leaves = leaves_of(s);
  outputs out = scores_of_blocks(s);
  flat_block_min(context_of(s), block_of(s), leaves.list, leaves.count, out.buffers.list,
                 out.buffers.count);
  give(s, &out);
}

static void do_max(step *s) {
  const buffers leaves = leaves_of(s);
  outputs out = scores_of_blocks(s);
  flat_block_max(context_of(s), block_of(s), leaves.list, leaves.count, out.buffers.list,
                 out.buffers.count);
  give(s, &out);
}

static void do_nnz(step *s) {
  const buffers leaves = leaves_of(s);
  outputs out = {0};
  if (option(s, "out") != NULL) add_output(&out, SPK_I64, flat_block_numblk(block_of(s)));
  say_int(s, flat_block_nnz(context_of(s), block_of(s), leaves.list, leaves.count,
                            number(s, "eps", SPK_NNZ_EPS), out.buffers.list, out.buffers.count));
  give(s, &out);
}

static void do_reduce(step *s) {
  static const char *const names[] = {"sum", "throw", "stop"};
  static const flat_function functions[] = {sums, throws, stops};
  flat_callback callback = {functions[choice(s, "fn", names, COUNT(names))], NULL, NULL};
  const buffers leaves = leaves_of(s);
  outputs out = scores_of_blocks(s);
  flat_block_reduce(context_of(s), block_of(s), leaves.list, leaves.count, &callback,
                    out.buffers.list, out.buffers.count);
  give(s, &out);
}

typedef void (*block_writer)(spk_context *, spk_block *, const spk_buffer *, int32_t,
                             const spk_buffer *, int32_t, const spk_buffer *, int32_t);

static void write_block(step *s, block_writer call, const char *key) {
  const buffers leaves = buffers_with(find(positional(s, 1), BLOCK));
  const buffers into = buffers_named(s, "into");
  const buffers given = buffers_named(s, key);
  call(context_of(s), block_of(s), leaves.list, leaves.count, into.list, into.count, given.list,
       given.count);
}

static void do_apply_mask(step *s) {
  write_block(s, flat_block_apply_mask, "mask");
}
static void do_apply_keep_mask(step *s) {
  write_block(s, flat_block_apply_keep_mask, "mask");
}
static void do_apply_multiplier(step *s) {
  write_block(s, flat_block_apply_multiplier, "multiplier");
}

static void do_hard_threshold(step *s) {
  const buffers leaves = buffers_with(handle_of(positional(s, 1)));
  const buffers into = buffers_named(s, "into");
  const buffers values = buffers_named(s, "values");
  const buffers thresholds = buffers_named(s, "thresholds");
  say_ints(s, is_scope(s)
                  ? flat_scope_hard_threshold(context_of(s), scope_of(s), leaves.list, leaves.count,
                                              into.list, into.count, thresholds.list,
                                              thresholds.count, values.list, values.count)
                  : flat_block_hard_threshold(context_of(s), block_of(s), leaves.list, leaves.count,
                                              into.list, into.count, thresholds.list,
                                              thresholds.count, values.list, values.count));
}

static void do_soft_threshold(step *s) {
  const buffers leaves = buffers_with(handle_of(positional(s, 1)));
  const buffers into = buffers_named(s, "into");
  const buffers metric = buffers_named(s, "conditioners");
  const buffers thresholds = buffers_named(s, "thresholds");
  const double eps = number(s, "eps", -1);
  const double atol = number(s, "atol", -1);
  const int32_t max_iter = (int32_t)integer(s, "max_iter", 0);
  const int32_t scale = (int32_t)integer(s, "scale", 0);
  say_ints(s,
           is_scope(s)
               ? flat_scope_soft_threshold(context_of(s), scope_of(s), leaves.list, leaves.count,
                                           into.list, into.count, thresholds.list, thresholds.count,
                                           metric.list, metric.count, eps, atol, max_iter, scale)
               : flat_block_soft_threshold(context_of(s), block_of(s), leaves.list, leaves.count,
                                           into.list, into.count, thresholds.list, thresholds.count,
                                           metric.list, metric.count, eps, atol, max_iter, scale));
}

static void do_set_data(step *s) {
  const buffers leaves = buffers_with(find(positional(s, 1), BLOCK));
  const buffers source = buffers_named(s, "source");
  flat_block_set_data(context_of(s), block_of(s), leaves.list, leaves.count, source.list,
                      source.count);
}

/* One array per leaf, in the shape of its view. */
static outputs elements_of_block(spk_block *block, int32_t dtype) {
  outputs out = {0};
  const int32_t count = flat_block_leaf_count(block);
  for (int32_t i = 0; i < count; ++i)
    add_output(&out, dtype, spk_view_numel(spk_block_leaf_view(block, i)));
  return out;
}

static void do_block_masks(step *s) {
  const buffers mask = buffers_named(s, "mask");
  outputs out = elements_of_block(block_of(s), SPK_U8);
  flat_block_get_masks(context_of(s), block_of(s), mask.list, mask.count, out.buffers.list,
                       out.buffers.count);
  give(s, &out);
}

static void do_broadcast(step *s) {
  const buffers values = buffers_named(s, "values");
  outputs out = elements_of_block(block_of(s), values.list[0].dtype);
  flat_block_broadcast_block_to_element(context_of(s), block_of(s), values.list, values.count,
                                        out.buffers.list, out.buffers.count);
  give(s, &out);
}

static void do_block_view(step *s) {
  say_view(s, flat_block_block_view(block_of(s), (int32_t)integer(s, "reorder", 0)));
}
static void do_broadcast_fake(step *s) {
  say_view(s, flat_block_broadcast_fake(block_of(s), SPK_F32));
}
static void do_expand_block_tensor(step *s) {
  say_view(s, flat_block_expand_block_tensor(block_of(s), SPK_F32));
}

/* The leaves' dtype if they agree, else the score dtype. */
static int32_t merged_dtype(spk_block *block) {
  const int32_t first = spk_view_dtype(spk_block_leaf_view(block, 0));
  for (int32_t i = 1; i < spk_block_leaf_count(block); ++i) {
    if (spk_view_dtype(spk_block_leaf_view(block, i)) != first)
      return flat_block_score_dtype(block);
  }
  return first < 0 ? SPK_F32 : first;
}

static void do_merged(step *s) {
  const buffers leaves = leaves_of(s);
  outputs out = {0};
  add_output(&out, merged_dtype(block_of(s)), flat_block_numel(block_of(s)));
  flat_block_block_view_merged(context_of(s), block_of(s), leaves.list, leaves.count,
                               out.buffers.list, out.buffers.count);
  give(s, &out);
}

/* --- commands: scopes --------------------------------------------------------------------------- */

static void do_scope(step *s) {
  const thing *block = find(positional(s, 2), BLOCK);
  const integers shape = list(s, "shape");
  spk_scope *scope =
      flat_scope_create((spk_block *)block->handle, shape.values, shape.count, option(s, "name"));
  take_arrays(own(s, SCOPE, scope), block);
}

static void do_couple_scopes(step *s) {
  const members all = members_of(s, SCOPE);
  const integers orders = list(s, "orders");
  thing *made = own(s, SCOPE,
                    flat_scope_couple((spk_scope *const *)all.handles, all.count, orders.values,
                                      orders.count, option(s, "name")));
  for (int32_t i = 0; i < all.count; ++i) take_arrays(made, all.parts[i]);
}

static void do_numscope(step *s) {
  say_int(s, flat_scope_numscope(scope_of(s)));
}
static void do_numblk_per_scope(step *s) {
  say_int(s, flat_scope_numblk_per_scope(scope_of(s)));
}
static void do_numel_per_scope(step *s) {
  say_int(s, flat_scope_numel_per_scope(scope_of(s)));
}
static void do_member_count(step *s) {
  say_int(s, flat_scope_member_count(scope_of(s)));
}
static void do_sparsity_to_nnz(step *s) {
  say_int(s, flat_scope_sparsity_to_nnz(scope_of(s), strtod(positional(s, 2), NULL)));
}

/* One array per scope or per block of a scope, of the given dtype. */
static outputs of_scopes(const step *s, int32_t dtype, bool per_block) {
  outputs out = {0};
  const int64_t each = per_block ? flat_scope_numblk_per_scope(scope_of(s)) : 1;
  add_output(&out, dtype, flat_scope_numscope(scope_of(s)) * each);
  return out;
}

static void do_scope_norms(step *s) {
  const buffers leaves = leaves_of(s);
  outputs out = of_scopes(s, flat_scope_score_dtype(scope_of(s)), true);
  flat_scope_block_norms(context_of(s), scope_of(s), leaves.list, leaves.count, number(s, "p", 2),
                         out.buffers.list, out.buffers.count);
  give(s, &out);
}

static void do_block_to_scope(step *s) {
  const buffers values = buffers_named(s, "values");
  outputs out = of_scopes(s, values.list[0].dtype, true);
  flat_scope_block_to_scope(context_of(s), scope_of(s), values.list, values.count, out.buffers.list,
                            out.buffers.count);
  give(s, &out);
}

static void do_scope_to_block(step *s) {
  const buffers values = buffers_named(s, "values");
  outputs out = {0};
  for (int32_t i = 0; i < flat_scope_member_count(scope_of(s)); ++i) {
    const spk_block *block = spk_scope_member_block(scope_of(s), i);
    add_output(&out, values.list[0].dtype, spk_block_numblk(block));
  }
  flat_scope_scope_to_block(context_of(s), scope_of(s), values.list, values.count, out.buffers.list,
                            out.buffers.count);
  give(s, &out);
}

static void do_block_to_scope_view(step *s) {
  say_view(s,
           flat_scope_block_to_scope_view(scope_of(s), SPK_F32, (int32_t)integer(s, "reorder", 0)));
}

/* Scores are given, or come from values: the leaves' own data if nothing is given. */
static buffers values_to_rank(const step *s, buffers *scores) {
  const buffers none = {{{NULL, 0, 0, 0, NULL}}, 0};
  *scores = buffers_named(s, "scores");
  return scores->count > 0 || option(s, "block_mask") != NULL ? none : leaves_of(s);
}

static void do_kth_largest(step *s) {
  buffers scores;
  const buffers values = values_to_rank(s, &scores);
  const integers k = list(s, "k");
  outputs out = of_scopes(s, flat_scope_score_dtype(scope_of(s)), false);
  flat_scope_kth_largest(context_of(s), scope_of(s), values.list, values.count, scores.list,
                         scores.count, k.values, k.count, out.buffers.list, out.buffers.count);
  give(s, &out);
}

static void do_kth_mid(step *s) {
  buffers scores;
  const buffers values = values_to_rank(s, &scores);
  const integers k = list(s, "k");
  outputs out = of_scopes(s, flat_scope_score_dtype(scope_of(s)), false);
  flat_scope_kth_mid(context_of(s), scope_of(s), values.list, values.count, scores.list,
                     scores.count, k.values, k.count, number(s, "k_weight", 1), out.buffers.list,
                     out.buffers.count);
  give(s, &out);
}

static const char *const tie_names[] = {"by_position", "keep_all"};

static void do_keep_top(step *s) {
  const buffers leaves = buffers_with(find(positional(s, 1), SCOPE));
  const buffers into = buffers_named(s, "into");
  const buffers values = buffers_named(s, "values");
  const buffers scores = buffers_named(s, "scores");
  const integers counts = list(s, "counts");
  say_ints(s, flat_scope_keep_top(context_of(s), scope_of(s), leaves.list, leaves.count, into.list,
                                  into.count, counts.values, counts.count, values.list,
                                  values.count, scores.list, scores.count,
                                  choice(s, "ties", tie_names, COUNT(tie_names))));
}

static void do_masks(step *s) {
  buffers scores;
  const buffers values = values_to_rank(s, &scores);
  const buffers block_mask = buffers_named(s, "block_mask");
  const integers counts = list(s, "counts");
  outputs out = {0};
  for (int32_t i = 0; i < flat_scope_leaf_count(scope_of(s)); ++i)
    add_output(&out, SPK_U8, spk_view_numel(spk_scope_leaf_view(scope_of(s), i)));
  say_ints(s,
           flat_scope_get_masks(context_of(s), scope_of(s), values.list, values.count, scores.list,
                                scores.count, block_mask.list, block_mask.count, counts.values,
                                counts.count, choice(s, "ties", tie_names, COUNT(tie_names)),
                                out.buffers.list, out.buffers.count));
  give(s, &out);
}

/* --- commands: conveniences --------------------------------------------------------------------- */

static void do_prune_nm(step *s) {
  const buffers weights = buffers_with(find(positional(s, 1), VIEW));
  const buffers into = buffers_named(s, "into");
  say_ints(s, flat_prune_nm(context_of(s), view_of(s), weights.list, weights.count, into.list,
                            into.count, (int32_t)integer(s, "axis", 0), integer(s, "n", 0),
                            integer(s, "m", 0)));
}

static void do_prune_unstructured(step *s) {
  const buffers weights = buffers_with(find(positional(s, 1), VIEW));
  const buffers into = buffers_named(s, "into");
  say_ints(s, flat_prune_unstructured(context_of(s), view_of(s), weights.list, weights.count,
                                      into.list, into.count, number(s, "sparsity", 0)));
}

static void do_soft_threshold_blocks(step *s) {
  const buffers weights = buffers_with(find(positional(s, 1), VIEW));
  const buffers into = buffers_named(s, "into");
  const integers shape = list(s, "shape");
  say_ints(s, flat_soft_threshold_blocks(context_of(s), view_of(s), weights.list, weights.count,
                                         into.list, into.count, shape.values, shape.count,
                                         number(s, "threshold", 0)));
}

/* --- commands: schedules ------------------------------------------------------------------------ */

static void do_schedule(step *s) {
  const char *kind = positional(s, 2);
  thing *made = make(positional(s, 1), SCHEDULE);
  if (strcmp(kind, "cosine") == 0) {
    made->handle =
        flat_schedule_create_cosine(number(s, "prune_rate", 0.3), integer(s, "t_max", 1000),
                                    number(s, "eta_min", 0), integer(s, "last_epoch", -1));
  } else if (strcmp(kind, "linear") == 0) {
    made->handle =
        flat_schedule_create_linear(number(s, "prune_rate", 0.3), integer(s, "t_max", 1000));
  } else if (strcmp(kind, "magnitude") == 0) {
    made->handle = flat_schedule_create_magnitude(number(s, "initial", 0), number(s, "final", 0),
                                                  integer(s, "t_max", 0), integer(s, "t_start", 0),
                                                  integer(s, "interval", 1));
  } else {
    made->function.function = strcmp(option(s, "fn"), "throw") == 0 ? throws : halves;
    made->handle = flat_schedule_create_custom(&made->function);
  }
  if (made->handle == NULL) --state.count;
}

static spk_schedule *schedule_of(const step *s) {
  return (spk_schedule *)find(positional(s, 1), SCHEDULE)->handle;
}

static void do_schedule_step(step *s) {
  if (option(s, "t") == NULL) {
    flat_schedule_step(schedule_of(s));
  } else {
    flat_schedule_step_to(schedule_of(s), integer(s, "t", 0));
  }
}
static void do_position(step *s) {
  say_int(s, flat_schedule_position(schedule_of(s)));
}
static void do_rate(step *s) {
  const double rate = option(s, "current") == NULL
                          ? flat_schedule_rate(schedule_of(s))
                          : flat_schedule_rate_from(schedule_of(s), number(s, "current", 0));
  say_numbers(s, &rate, 1);
}
static void do_cumulative_sparsity(step *s) {
  const double sparsity = flat_schedule_cumulative_sparsity(schedule_of(s), integer(s, "t", 0));
  say_numbers(s, &sparsity, 1);
}

/* --- commands: maskings ------------------------------------------------------------------------- */

static const char *const prune_names[] = {"magnitude",
                                          "global_magnitude",
                                          "struct_magnitude_mean",
                                          "struct_magnitude_max",
                                          "struct_magnitude_min",
                                          "struct_criterion",
                                          "callback"};
static const char *const redistribute_names[] = {"none", "nonzero", "momentum", "gradient",
                                                 "callback"};
static const char *const grow_names[] = {"none",
                                         "random",
                                         "gradient",
                                         "momentum",
                                         "struct_gradient_mean",
                                         "struct_gradient_max",
                                         "struct_gradient_min",
                                         "struct_criterion",
                                         "callback"};
static const char *const init_names[] = {
    "random",        "erdos_renyi",        "erdos_renyi_kernel",
    "struct_random", "struct_erdos_renyi", "struct_erdos_renyi_kernel",
    "resume",        "lottery_ticket",     "lottery_ticket_dist"};

/* The functions of a masking live as long as the program: it borrows them. */
static flat_callback *function_for(bool wanted, flat_function function, thing *masking) {
  static flat_callback functions[MOST_THINGS];
  static int used;
  if (!wanted) return NULL;
  flat_callback *made = &functions[used++ % MOST_THINGS];
  made->function = function;
  made->user = masking;
  return made;
}

static void do_masking(step *s) {
  const thing *schedule = find(positional(s, 2), SCHEDULE);
  const char *fn = option(s, "fn");
  const bool all_throw = fn != NULL && strcmp(fn, "throw") == 0;
  const int32_t prune = choice(s, "prune", prune_names, COUNT(prune_names));
  const int32_t share = choice(s, "redistribute", redistribute_names, COUNT(redistribute_names));
  const int32_t grow = choice(s, "grow", grow_names, COUNT(grow_names));
  thing *made = make(positional(s, 1), MASKING);
  made->handle = flat_masking_create(
      (spk_schedule *)schedule->handle, integer(s, "seed", 0), prune, share, grow,
      (int32_t)integer(s, "dense_gradients", 0),
      function_for(prune == SPK_PRUNE_CALLBACK, all_throw ? throws : prunes, made),
      function_for(prune == SPK_PRUNE_STRUCT_CRITERION, all_throw ? throws : sums, made),
      function_for(share == SPK_REDISTRIBUTE_CALLBACK, all_throw ? throws : tells_statistic, made),
      function_for(grow == SPK_GROW_CALLBACK, all_throw ? throws : grows, made),
      function_for(grow == SPK_GROW_STRUCT_CRITERION, all_throw ? throws : sums, made));
  if (made->handle == NULL) --state.count;
}

static spk_masking *masking_of(const step *s) {
  return (spk_masking *)find(positional(s, 1), MASKING)->handle;
}

static void do_add(step *s) {
  static const char *const keys[LAYER_ARRAYS] = {NULL,       "mask",    "gradient",
                                                 "momentum", "adam_m1", "adam_m2"};
  thing *masking = find(positional(s, 1), MASKING);
  const thing *view = find(positional(s, 3), VIEW);
  const int32_t id = flat_masking_add(masking_of(s), positional(s, 2), (spk_view *)view->handle);
  say_int(s, id);
  if (id < 0) return;
  const array **arrays = &masking->arrays[id * LAYER_ARRAYS];
  arrays[WEIGHT] = view->arrays[0];
  for (int i = MASK; i < LAYER_ARRAYS; ++i) {
    const char *name = option(s, keys[i]);
    arrays[i] = name == NULL ? NULL : &find(name, ARRAY)->array;
  }
  masking->count = id + 1;
}

/* One list of buffers per kind of array, each with an entry per layer. */
typedef struct layers {
  spk_buffer list[LAYER_ARRAYS][MOST_BUFFERS];
  int32_t count;
} layers;

static layers layers_of(const step *s) {
  layers all = {0};
  const thing *masking = find(positional(s, 1), MASKING);
  all.count = masking->count;
  for (int32_t i = 0; i < all.count; ++i) {
    for (int kind = 0; kind < LAYER_ARRAYS; ++kind)
      all.list[kind][i] = buffer_of(masking->arrays[i * LAYER_ARRAYS + kind]);
  }
  return all;
}

#define LAYER_LISTS(all)                                                                \
  (all).list[WEIGHT], (all).count, (all).list[MASK], (all).count, (all).list[GRADIENT], \
      (all).count, (all).list[MOMENTUM], (all).count, (all).list[ADAM_M1], (all).count, \
      (all).list[ADAM_M2], (all).count

static void do_remove(step *s) {
  flat_masking_remove(masking_of(s), positional(s, 2));
}
static void do_remove_matching(step *s) {
  say_int(s, flat_masking_remove_matching(masking_of(s), positional(s, 2)));
}
static void do_has_layer(step *s) {
  say_int(s, flat_masking_has_layer(masking_of(s), (int32_t)strtol(positional(s, 2), NULL, 10)));
}
static void do_layer_name(step *s) {
  say_text(s, flat_masking_layer_name(masking_of(s), (int32_t)strtol(positional(s, 2), NULL, 10)));
}
static void do_find(step *s) {
  say_int(s, flat_masking_find(masking_of(s), positional(s, 2)));
}
static void do_layer_count(step *s) {
  say_int(s, flat_masking_layer_count(masking_of(s)));
}

static void do_initialise(step *s) {
  static const char *const draws[] = {"exact", "bernoulli"};
  const layers all = layers_of(s);
  const integers counts = list(s, "counts");
  flat_masking_initialise(context_of(s), masking_of(s), all.list[WEIGHT], all.count, all.list[MASK],
                          all.count, number(s, "density", 0),
                          choice(s, "mode", init_names, COUNT(init_names)),
                          choice(s, "draw", draws, COUNT(draws)), counts.values, counts.count);
}

static void do_densities(step *s) {
  const array found = new_array(SPK_F64, flat_masking_layer_count(masking_of(s)));
  const spk_buffer out = buffer_of(&found);
  flat_masking_densities(masking_of(s), number(s, "density", 0),
                         choice(s, "mode", init_names, COUNT(init_names)), &out, 1);
  say_numbers(s, (const double *)found.data, found.numel);
  free(found.data);
}

static void do_apply(step *s) {
  static const char *const names[] = {"weights", "momentum", "gradients"};
  static const int32_t bits[] = {SPK_APPLY_WEIGHTS, SPK_APPLY_MOMENTUM, SPK_APPLY_GRADIENTS};
  const layers all = layers_of(s);
  const char *given = option(s, "what");
  int32_t what = 0;
  for (int i = 0; i < COUNT(names); ++i) {
    if (given != NULL && strstr(given, names[i]) != NULL) what |= bits[i];
  }
  flat_masking_apply(context_of(s), masking_of(s), LAYER_LISTS(all), what);
}

static void do_step(step *s) {
  const layers all = layers_of(s);
  flat_masking_step(context_of(s), masking_of(s), LAYER_LISTS(all));
}

static void do_update(step *s) {
  const layers all = layers_of(s);
  const flat_numbers report = flat_masking_update(context_of(s), masking_of(s), LAYER_LISTS(all));
  say_numbers(s, report.values, report.count);
}

static void do_stats(step *s) {
  const flat_numbers stats = flat_masking_stats(masking_of(s), (int32_t)integer(s, "layer", -1));
  say_numbers(s, stats.values, stats.count);
}
static void do_baseline(step *s) {
  say_int(s, flat_masking_baseline(masking_of(s)));
}
static void do_adjusted_growth(step *s) {
  const double growth = flat_masking_adjusted_growth(masking_of(s));
  say_numbers(s, &growth, 1);
}

static void do_state_save(step *s) {
  const array blob = new_array(SPK_U8, flat_masking_save_size(masking_of(s)));
  const spk_buffer out = buffer_of(&blob);
  flat_masking_save(masking_of(s), &out, 1);
  make(positional(s, 2), ARRAY)->array = blob;
}
static void do_state_restore(step *s) {
  const spk_buffer blob = buffer_of(&find(positional(s, 2), ARRAY)->array);
  flat_masking_restore(masking_of(s), &blob, 1);
}

/* --- the driver --------------------------------------------------------------------------------- */

static void do_close(step *s) {
  release(handle_of(positional(s, 1)));
}
static void do_live(step *s) {
  say_int(s, flat_live_handles());
}

#define COMMAND(name) \
  { #name, do_##name }
static const struct {
  const char *name;
  void (*run)(step *s);
} commands[] = {
    COMMAND(array),
    COMMAND(zeros),
    COMMAND(readonly),
    COMMAND(save),
    COMMAND(address),
    COMMAND(context),
    COMMAND(view),
    COMMAND(format),
    COMMAND(dtype),
    COMMAND(shape),
    COMMAND(stride),
    COMMAND(offset),
    COMMAND(numel),
    COMMAND(cosize),
    COMMAND(linear_offset),
    COMMAND(to_param_rc),
    COMMAND(view_block_view),
    COMMAND(view_merged),
    COMMAND(view_broadcast),
    COMMAND(view_apply_mask),
    COMMAND(view_apply_keep_mask),
    COMMAND(view_apply_multiplier),
    COMMAND(block),
    COMMAND(couple),
    COMMAND(grid_shape),
    COMMAND(numblk),
    COMMAND(numel_per_block),
    COMMAND(score_dtype),
    COMMAND(leaf_count),
    COMMAND(name),
    COMMAND(leaf),
    COMMAND(norms),
    COMMAND(min),
    COMMAND(max),
    COMMAND(nnz),
    COMMAND(reduce),
    COMMAND(apply_mask),
    COMMAND(apply_keep_mask),
    COMMAND(apply_multiplier),
    COMMAND(hard_threshold),
    COMMAND(soft_threshold),
    COMMAND(set_data),
    COMMAND(block_masks),
    COMMAND(broadcast),
    COMMAND(block_view),
    COMMAND(broadcast_fake),
    COMMAND(expand_block_tensor),
    COMMAND(merged),
    COMMAND(scope),
    COMMAND(couple_scopes),
    COMMAND(numscope),
    COMMAND(numblk_per_scope),
    COMMAND(numel_per_scope),
    COMMAND(member_count),
    COMMAND(sparsity_to_nnz),
    COMMAND(scope_norms),
    COMMAND(block_to_scope),
    COMMAND(scope_to_block),
    COMMAND(block_to_scope_view),
    COMMAND(kth_largest),
    COMMAND(kth_mid),
    COMMAND(keep_top),
    COMMAND(masks),
    COMMAND(prune_nm),
    COMMAND(prune_unstructured),
    COMMAND(soft_threshold_blocks),
    COMMAND(schedule),
    COMMAND(schedule_step),
    COMMAND(position),
    COMMAND(rate),
    COMMAND(cumulative_sparsity),
    COMMAND(masking),
    COMMAND(add),
    COMMAND(remove),
    COMMAND(remove_matching),
    COMMAND(has_layer),
    COMMAND(layer_name),
    COMMAND(find),
    COMMAND(layer_count),
    COMMAND(initialise),
    COMMAND(densities),
    COMMAND(apply),
    COMMAND(step),
    COMMAND(update),
    COMMAND(stats),
    COMMAND(baseline),
    COMMAND(adjusted_growth),
    COMMAND(state_save),
    COMMAND(state_restore),
    COMMAND(close),
    COMMAND(live),
};

static void run_step(step *s) {
  for (int i = 0; i < COUNT(commands); ++i) {
    if (strcmp(commands[i].name, s->positional[0]) != 0) continue;
    snprintf(s->result, sizeof s->result, "ok");
    state.thrown = false;
    flat_begin();
    commands[i].run(s);
    if (state.thrown) {
      snprintf(s->result, sizeof s->result, "error callback");
    } else if (flat_error.status != SPK_OK) {
      snprintf(s->result, sizeof s->result, "error %s %s", flat_status_string(flat_error.status),
               flat_error.message);
    }
    return;
  }
  die("unknown command", s->positional[0]);
}

/* key=value, unless the argument is a positional one. */
static void add_argument(step *s, char *argument) {
  char *equals = strchr(argument, '=');
  if (equals == NULL) {
    s->positional[s->count++] = argument;
    return;
  }
  *equals = 0;
  s->keys[s->options] = argument;
  s->values[s->options++] = equals + 1;
}

/* Takes a line apart; returns the case's name. */
static const char *parse(char *line, step *s) {
  char *rest = line;
  const char *case_name = strtok_r(line, "\t\r\n", &rest);
  memset(s, 0, sizeof *s);
  for (char *word = strtok_r(NULL, "\t\r\n", &rest); word != NULL;
       word = strtok_r(NULL, "\t\r\n", &rest))
    add_argument(s, word);
  return case_name;
}

int main(int argc, char **argv) {
  static char line[MOST_TEXT];
  static step one;
  int number_of_step = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: %s CASES RESULTS\n", argv[0]);
    return 2;
  }
  state.cases = argv[1];
  state.results = argv[2];
  FILE *cases = open_file(state.cases, "/", "cases.tsv", "r");
  FILE *results = open_file(state.results, "/", "results.tsv", "w");
  while (fgets(line, sizeof line, cases) != NULL) {
    const char *case_name = parse(line, &one);
    if (case_name == NULL) continue;
    if (strcmp(case_name, state.case_name) != 0) {
      end_case();
      number_of_step = 0;
      snprintf(state.case_name, sizeof state.case_name, "%s", case_name);
    }
    run_step(&one);
    fprintf(results, "%s\t%d\t%s\n", state.case_name, ++number_of_step, one.result);
  }
  end_case();
  fclose(results);
  fclose(cases);
  return 0;
}
