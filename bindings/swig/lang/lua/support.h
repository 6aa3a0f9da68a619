/*
 * What the Lua wrapper needs besides SWIG: errors, numbers, arrays, lists and functions. One source
 * for Lua 5.1 (LuaJIT) to 5.4.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SPARSEKIT_BINDINGS_LUA_SUPPORT_H_
#define SPARSEKIT_BINDINGS_LUA_SUPPORT_H_

#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "flat.h"

#if LUA_VERSION_NUM < 502
#define lua_rawlen lua_objlen
#define slua_set_owner lua_setfenv
#elif LUA_VERSION_NUM < 504
#define slua_set_owner lua_setuservalue
#else
#define slua_set_owner(L, index) lua_setiuservalue(L, index, 1)
#endif

/* --- errors ------------------------------------------------------------------------------- */

#define SLUA_ERROR "sparsekit.Error"

/* The failure of the call that is under way, as an error object. */
static void slua_push_failure(lua_State *L) {
  lua_createtable(L, 0, 3);
  lua_pushinteger(L, flat_error.status);
  lua_setfield(L, -2, "status");
  lua_pushstring(L, spk_status_string(flat_error.status));
  lua_setfield(L, -2, "status_name");
  lua_pushstring(L, flat_error.message);
  lua_setfield(L, -2, "message");
  luaL_getmetatable(L, SLUA_ERROR);
  lua_setmetatable(L, -2);
}

/* Pushes the refusal of an argument; always 0. */
static int slua_refuse(lua_State *L, spk_status status, const char *what, const char *got,
                       const char *expected) {
  flat_begin();
  flat_refuse(status, what, got, expected);
  slua_push_failure(L);
  return 0;
}

static int slua_raise(lua_State *L, spk_status status, const char *what, const char *got,
                      const char *expected) {
  slua_refuse(L, status, what, got, expected);
  return lua_error(L);
}

/* What SWIG says of an argument of the wrong type. */
#undef SWIG_fail_arg
#define SWIG_fail_arg(function, number, type)                                                   \
  {                                                                                             \
    slua_refuse(L, SPK_INVALID_ARGUMENT, function, lua_typename(L, lua_type(L, number)), type); \
    goto fail;                                                                                  \
  }

/* Whether the value is a handle: other userdata must not be taken for one. */
static int slua_is_handle(lua_State *L, int index) {
  if (!lua_isuserdata(L, index) || !lua_getmetatable(L, index)) return 0;
  lua_pushstring(L, "__gc");
  lua_rawget(L, -2);
  const int is = lua_tocfunction(L, -1) == SWIG_Lua_class_destruct;
  lua_pop(L, 2);
  return is;
}

/* SWIG asks this of an argument that is to be a handle or nil. */
#undef SWIG_isptrtype
#define SWIG_isptrtype(L, index) (lua_isnil(L, index) || slua_is_handle(L, index))

/* --- numbers ------------------------------------------------------------------------------ */

static void slua_push_integer(lua_State *L, int64_t value) {
#if LUA_VERSION_NUM < 503
  lua_pushnumber(L, (lua_Number)value);
#else
  lua_pushinteger(L, value);
#endif
}

/* An integer in [low, high]; else a refusal is pushed. Where numbers are doubles, beyond 2^53 it
 * cannot be known which one was meant. */
static int slua_integer(lua_State *L, int index, int64_t low, int64_t high, int64_t *value) {
  char got[64];
  int exact = 0;
  if (lua_type(L, index) != LUA_TNUMBER) {
    return slua_refuse(L, SPK_INVALID_ARGUMENT, "integer", luaL_typename(L, index), "a number");
  }
#if LUA_VERSION_NUM < 503
  const lua_Number number = lua_tonumber(L, index);
  exact = floor(number) == number && fabs(number) <= 9007199254740992.0;
  *value = exact ? (int64_t)number : 0;
#else
  *value = lua_tointegerx(L, index, &exact);
#endif
  if (exact && *value >= low && *value <= high) return 1;
  snprintf(got, sizeof got, "%.17g", (double)lua_tonumber(L, index));
  return slua_refuse(L, SPK_INVALID_ARGUMENT, "integer", got, "an integer in range");
}

static void slua_push_integers(lua_State *L, const flat_ints *list) {
  lua_createtable(L, list->count, 0);
  for (int32_t i = 0; i < list->count; ++i) {
    slua_push_integer(L, list->values[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void slua_push_numbers(lua_State *L, const double *values, int64_t count) {
  lua_createtable(L, (int)count, 0);
  for (int64_t i = 0; i < count; ++i) {
    lua_pushnumber(L, values[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

/* --- arrays ------------------------------------------------------------------------------- */

#define SLUA_ARRAY "sparsekit.Array"

/* Elements follow the struct, or belong to the userdata's owner. */
typedef struct slua_array {
  void *data;
  int64_t numel;
  int32_t dtype;
  int32_t read_only;
} slua_array;

static int64_t slua_element_size(int32_t dtype) {
  return (dtype & 0xff) / 8;
}

/* NULL if the value is no array. */
static slua_array *slua_to_array(lua_State *L, int index) {
  void *array = lua_touserdata(L, index);
  if (array == NULL || !lua_getmetatable(L, index)) return NULL;
  luaL_getmetatable(L, SLUA_ARRAY);
  const int same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? (slua_array *)array : NULL;
}

static slua_array *slua_check_array(lua_State *L, int index) {
  slua_array *array = slua_to_array(L, index);
  if (array == NULL) {
    slua_raise(L, SPK_INVALID_ARGUMENT, "array", luaL_typename(L, index), "a sparsekit.array");
  }
  return array;
}

static int64_t slua_check_integer(lua_State *L, int index, int64_t low, int64_t high) {
  int64_t value = 0;
  if (!slua_integer(L, index, low, high, &value)) lua_error(L);
  return value;
}

/* Pushes an array; its elements are not set, or are at `data`. */
static slua_array *slua_push_array(lua_State *L, int32_t dtype, int64_t numel, void *data) {
  const int64_t bytes = data == NULL ? numel * slua_element_size(dtype) : 0;
  slua_array *array = (slua_array *)lua_newuserdata(L, sizeof *array + (size_t)bytes);
  array->data = data == NULL ? array + 1 : data;
  array->numel = numel;
  array->dtype = dtype;
  array->read_only = 0;
  luaL_getmetatable(L, SLUA_ARRAY);
  lua_setmetatable(L, -2);
  return array;
}

/* array_new(dtype, numel): zeros. */
static int slua_array_new(lua_State *L) {
  const int32_t dtype = (int32_t)slua_check_integer(L, 1, 0, INT32_MAX);
  const int64_t numel = slua_check_integer(L, 2, 0, PTRDIFF_MAX / 16);
  slua_array *array = slua_push_array(L, dtype, numel, NULL);
  memset(array->data, 0, (size_t)(numel * slua_element_size(dtype)));
  return 1;
}

/* array_of_bytes(dtype, text): a copy of them. */
static int slua_array_of_bytes(lua_State *L) {
  size_t length = 0;
  const int32_t dtype = (int32_t)slua_check_integer(L, 1, 0, INT32_MAX);
  const char *text = luaL_checklstring(L, 2, &length);
  const int64_t size = slua_element_size(dtype);
  if ((int64_t)length % size != 0) {
    return slua_raise(L, SPK_SHAPE_MISMATCH, "bytes", "a piece of an element", "whole elements");
  }
  memcpy(slua_push_array(L, dtype, (int64_t)length / size, NULL)->data, text, length);
  return 1;
}

/* array_borrow(dtype, numel, pointer, read_only, owner): elements of somebody else, whom the array
 * keeps alive. The pointer is a light userdata, or a cdata pointer of LuaJIT. */
static int slua_array_borrow(lua_State *L) {
  const int32_t dtype = (int32_t)slua_check_integer(L, 1, 0, INT32_MAX);
  const int64_t numel = slua_check_integer(L, 2, 0, PTRDIFF_MAX / 16);
  const int read_only = lua_toboolean(L, 4);
  void *data = NULL;
  if (lua_islightuserdata(L, 3)) {
    data = lua_touserdata(L, 3);
  } else if (lua_type(L, 3) > LUA_TTHREAD) {
    data = *(void *const *)lua_topointer(L, 3);
  }
  if (data == NULL) {
    return slua_raise(L, SPK_INVALID_ARGUMENT, "array", luaL_typename(L, 3), "a pointer");
  }
  slua_push_array(L, dtype, numel, data)->read_only = read_only;
  lua_createtable(L, 1, 0);
  lua_pushvalue(L, 5);
  lua_rawseti(L, -2, 1);
  slua_set_owner(L, -2);
  return 1;
}

static int slua_array_is(lua_State *L) {
  lua_pushboolean(L, slua_to_array(L, 1) != NULL);
  return 1;
}

static int slua_array_dtype(lua_State *L) {
  lua_pushinteger(L, slua_check_array(L, 1)->dtype);
  return 1;
}

static int slua_array_pointer(lua_State *L) {
  lua_pushlightuserdata(L, slua_check_array(L, 1)->data);
  return 1;
}

static int slua_array_freeze(lua_State *L) {
  slua_check_array(L, 1)->read_only = 1;
  lua_settop(L, 1);
  return 1;
}

static int slua_array_bytes(lua_State *L) {
  const slua_array *array = slua_check_array(L, 1);
  lua_pushlstring(L, (const char *)array->data,
                  (size_t)(array->numel * slua_element_size(array->dtype)));
  return 1;
}

static int slua_array_length(lua_State *L) {
  slua_push_integer(L, slua_check_array(L, 1)->numel);
  return 1;
}

static void slua_push_element(lua_State *L, const slua_array *array, int64_t i) {
  switch (array->dtype) {
    case SPK_F32:
      lua_pushnumber(L, ((const float *)array->data)[i]);
      break;
    case SPK_F64:
      lua_pushnumber(L, ((const double *)array->data)[i]);
      break;
    case SPK_I64:
      slua_push_integer(L, ((const int64_t *)array->data)[i]);
      break;
    case SPK_U8:
      lua_pushinteger(L, ((const uint8_t *)array->data)[i]);
      break;
    default:
      lua_pushinteger(L, ((const uint16_t *)array->data)[i]);
  }
}

/* array[i], or a method. Like a table's, an index out of range gives nil. */
static int slua_array_index(lua_State *L) {
  const slua_array *array = slua_check_array(L, 1);
  if (lua_type(L, 2) == LUA_TNUMBER) {
    const lua_Number i = lua_tonumber(L, 2);
    if (!(i >= 1 && i <= (lua_Number)array->numel && floor(i) == i)) return 0;
    slua_push_element(L, array, (int64_t)i - 1);
    return 1;
  }
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  return 1;
}

static double slua_check_number(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) {
    slua_raise(L, SPK_INVALID_ARGUMENT, "element", luaL_typename(L, index), "a number");
  }
  return lua_tonumber(L, index);
}

/* array[i] = number */
static int slua_array_new_index(lua_State *L) {
  slua_array *array = slua_check_array(L, 1);
  const int64_t i = slua_check_integer(L, 2, 1, array->numel) - 1;
  if (array->read_only) {
    return slua_raise(L, SPK_INVALID_ARGUMENT, "array", "a read-only one", "a writable one");
  }
  switch (array->dtype) {
    case SPK_F32:
      ((float *)array->data)[i] = (float)slua_check_number(L, 3);
      break;
    case SPK_F64:
      ((double *)array->data)[i] = slua_check_number(L, 3);
      break;
    case SPK_I64:
      ((int64_t *)array->data)[i] = slua_check_integer(L, 3, INT64_MIN, INT64_MAX);
      break;
    case SPK_U8:
      ((uint8_t *)array->data)[i] = (uint8_t)slua_check_integer(L, 3, 0, UINT8_MAX);
      break;
    default:
      ((uint16_t *)array->data)[i] = (uint16_t)slua_check_integer(L, 3, 0, UINT16_MAX);
  }
  return 0;
}

/* --- lists -------------------------------------------------------------------------------- */

/* Scratch that lives as long as the call: a userdata on the stack. */
static void *slua_scratch(lua_State *L, int32_t count, size_t size) {
  return lua_newuserdata(L, ((size_t)count + 1) * size);
}

/* The length of a list at `index`; nil is one of none. Else a refusal is pushed. */
static int slua_list(lua_State *L, int index, const char *what, int32_t *count) {
  *count = 0;
  if (lua_isnil(L, index)) return 1;
  if (lua_type(L, index) != LUA_TTABLE) {
    return slua_refuse(L, SPK_INVALID_ARGUMENT, what, luaL_typename(L, index), "a list");
  }
  *count = (int32_t)lua_rawlen(L, index);
  return 1;
}

/* A list of arrays; `false` stands for one that is missing. Sets *read_only if one is. */
static int slua_buffers(lua_State *L, int index, spk_buffer **buffers, int32_t *count,
                        int *read_only) {
  *read_only = 0;
  if (!slua_list(L, index, "arrays", count)) return 0;
  spk_buffer *scratch = (spk_buffer *)slua_scratch(L, *count, sizeof *scratch);
  memset(scratch, 0, (size_t)*count * sizeof *scratch);
  *buffers = scratch;
  for (int32_t i = 0; i < *count; ++i) {
    lua_rawgeti(L, index, i + 1);
    if (lua_toboolean(L, -1)) {
      const slua_array *array = slua_to_array(L, -1);
      if (array == NULL) {
        return slua_refuse(L, SPK_INVALID_ARGUMENT, "array", luaL_typename(L, -1),
                           "a sparsekit.array");
      }
      const spk_buffer buffer = {array->data, array->numel, array->dtype, SPK_LAYOUT_VIEW, NULL};
      scratch[i] = buffer;
      *read_only |= array->read_only;
    }
    lua_pop(L, 1);
  }
  return 1;
}

static int slua_writable_buffers(lua_State *L, int index, spk_buffer **buffers, int32_t *count) {
  int read_only = 0;
  if (!slua_buffers(L, index, buffers, count, &read_only)) return 0;
  return !read_only ||
         slua_refuse(L, SPK_INVALID_ARGUMENT, "array", "a read-only one", "a writable one");
}

static int slua_integers(lua_State *L, int index, int64_t **values, int32_t *count) {
  if (!slua_list(L, index, "integers", count)) return 0;
  int64_t *scratch = (int64_t *)slua_scratch(L, *count, sizeof *scratch);
  *values = *count == 0 ? NULL : scratch;
  for (int32_t i = 0; i < *count; ++i) {
    lua_rawgeti(L, index, i + 1);
    if (!slua_integer(L, -1, INT64_MIN, INT64_MAX, &scratch[i])) return 0;
    lua_pop(L, 1);
  }
  return 1;
}

/* A list of handles of one type; `false` stands for a closed one. */
static int slua_handles(lua_State *L, int index, swig_type_info *type, void ***handles,
                        int32_t *count) {
  if (!slua_list(L, index, "members", count)) return 0;
  *handles = (void **)slua_scratch(L, *count, sizeof **handles);
  for (int32_t i = 0; i < *count; ++i) {
    (*handles)[i] = NULL;
    lua_rawgeti(L, index, i + 1);
    if (lua_toboolean(L, -1) &&
        (!slua_is_handle(L, -1) || !SWIG_IsOK(SWIG_ConvertPtr(L, -1, &(*handles)[i], type, 0)))) {
      return slua_refuse(L, SPK_INVALID_ARGUMENT, "member", luaL_typename(L, -1), "a handle");
    }
    lua_pop(L, 1);
  }
  return 1;
}

/* --- functions ---------------------------------------------------------------------------- */

/* The wrapped call that is under way: callbacks run on its coroutine. What a callback throws stays
 * on the stack, at the index `thrown`. */
typedef struct slua_call {
  lua_State *L;
  int thrown;
  struct slua_call *outer;
} slua_call;

static __thread slua_call *slua_current;

/* close(handle): releases it now; the handle is NULL from here on. Inside a callback the call that is
 * under way may still use it: then it is left to the garbage collector, which knows. */
static int slua_close(lua_State *L) {
  if (!slua_is_handle(L, 1)) {
    return slua_raise(L, SPK_INVALID_ARGUMENT, "close", luaL_typename(L, 1), "a handle");
  }
  swig_lua_userdata *handle = (swig_lua_userdata *)lua_touserdata(L, 1);
  if (!handle->own || slua_current != NULL) return 0;
  void *object = handle->ptr;
  handle->own = 0;
  handle->ptr = NULL;
  ((swig_lua_class *)handle->type->clientdata)->destructor(object);
  return 0;
}

static const char slua_cancel_key;
static const char slua_anchor_key;

/* A Lua function in the registry. Finalisers have no state of Lua at hand: `anchor` is a coroutine
 * of the registry, as old as the module. */
typedef struct slua_function {
  lua_State *anchor;
  int reference;
} slua_function;

typedef struct slua_arguments {
  const double *numbers;
  int64_t count;
  double *result;
  int cancelled;
} slua_arguments;

/* Runs protected, with the function as its upvalue: everything in here may throw. */
static int slua_protected(lua_State *L) {
  slua_arguments *arguments = (slua_arguments *)lua_touserdata(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  slua_push_numbers(L, arguments->numbers, arguments->count);
  lua_call(L, 1, 1);
  if (lua_touserdata(L, -1) == (void *)&slua_cancel_key) {
    arguments->cancelled = 1;
  } else if (lua_type(L, -1) == LUA_TNUMBER) {
    *arguments->result = lua_tonumber(L, -1);
  } else {
    slua_raise(L, SPK_INVALID_ARGUMENT, "result of a function", luaL_typename(L, -1), "a number");
  }
  return 0;
}

static int32_t slua_call_function(void *user, const double *numbers, int64_t count,
                                  double *result) {
  const slua_function *function = (const slua_function *)user;
  slua_arguments arguments = {numbers, count, result, 0};
  slua_call *call = slua_current;
  if (call == NULL || call->thrown != 0) return 1;
  lua_rawgeti(call->L, LUA_REGISTRYINDEX, function->reference);
  lua_pushlightuserdata(call->L, &arguments);
  const int failed = lua_pcall(call->L, 1, 0, 0);
  slua_current = call;
  if (failed) call->thrown = lua_gettop(call->L);
  return failed || arguments.cancelled;
}

static void slua_drop_function(void *user) {
  slua_function *function = (slua_function *)user;
  luaL_unref(function->anchor, LUA_REGISTRYINDEX, function->reference);
  free(function);
}

static int slua_function_of(lua_State *L, int index, void **user) {
  if (lua_type(L, index) != LUA_TFUNCTION) {
    return slua_refuse(L, SPK_INVALID_ARGUMENT, "function", luaL_typename(L, index), "a function");
  }
  lua_pushlightuserdata(L, (void *)&slua_anchor_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_State *anchor = lua_tothread(L, -1);
  lua_pushvalue(L, index);
  lua_pushcclosure(L, slua_protected, 1);
  const int reference = luaL_ref(L, LUA_REGISTRYINDEX);
  slua_function *function = (slua_function *)malloc(sizeof *function);
  if (function == NULL) {
    luaL_unref(L, LUA_REGISTRYINDEX, reference);
    return slua_refuse(L, SPK_OUT_OF_MEMORY, "function", "no memory", "some");
  }
  function->anchor = anchor;
  function->reference = reference;
  *user = function;
  return 1;
}

/* --- the module --------------------------------------------------------------------------- */

static const luaL_Reg slua_array_methods[] = {
    {"bytes", slua_array_bytes}, {"freeze", slua_array_freeze}, {NULL, NULL}};

/* Fills the module table on top of the stack. */
static void slua_open(lua_State *L) {
  lua_pushlightuserdata(L, (void *)&slua_anchor_key);
  lua_newthread(L);
  lua_rawset(L, LUA_REGISTRYINDEX);

  lua_pushlightuserdata(L, (void *)&slua_cancel_key);
  lua_setfield(L, -2, "CANCEL");

  luaL_newmetatable(L, SLUA_ERROR);
  lua_setfield(L, -2, "Error");

  luaL_newmetatable(L, SLUA_ARRAY);
  lua_pushcfunction(L, slua_array_length);
  lua_setfield(L, -2, "__len");
  lua_pushcfunction(L, slua_array_new_index);
  lua_setfield(L, -2, "__newindex");
  lua_newtable(L);
  for (const luaL_Reg *method = slua_array_methods; method->name != NULL; ++method) {
    lua_pushcfunction(L, method->func);
    lua_setfield(L, -2, method->name);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "Array");
  lua_pushcclosure(L, slua_array_index, 1);
  lua_setfield(L, -2, "__index");
  lua_setfield(L, -2, "array_metatable");
}

#endif /* SPARSEKIT_BINDINGS_LUA_SUPPORT_H_ */
