-- SPDX-License-Identifier: Apache-2.0
rockspec_format = "3.0"
package = "sparsekit"
version = "scm-1"
source = {
  url = "git+https://github.com/sparsekit/sparsekit.git",
  dir = "sparsekit/bindings/lua",
}
description = {
  summary = "Structured sparsity on arrays that you own, in place",
  homepage = "https://github.com/sparsekit/sparsekit",
  license = "Apache-2.0",
}
dependencies = { "lua >= 5.1, < 5.5" }
build = {
  type = "make",
  build_variables = {
    CFLAGS = "$(CFLAGS)",
    LIBFLAG = "$(LIBFLAG)",
    LUA_INCDIR = "$(LUA_INCDIR)",
  },
  install_variables = {
    INST_LUADIR = "$(LUADIR)",
    INST_LIBDIR = "$(LIBDIR)",
  },
}
