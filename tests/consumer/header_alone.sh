#!/bin/sh
# Each public header compiles alone, twice over, and their macros are usable, in every dialect that
# they promise and with every compiler that is here.
#     header_alone.sh INCLUDE_DIR
set -eu

# program HEADER
program() {
  cat <<END
#include <sparsekit/$1>
#include <sparsekit/$1>
int main(void) {
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  return options.struct_size == sizeof options && SPK_VERSION >= 0 ? SPK_OK : 1;
}
END
}

# try COMPILER LANGUAGE DIALECT
try() {
  command -v "$1" >/dev/null || return 0
  for header in sparsekit.h training.h; do
    program $header |
      "$1" -x "$2" -std="$3" -pedantic -Wall -Wextra -Werror -I"$include" -fsyntax-only -
  done
  tried="$tried $1:$3"
}

include=$1
tried=
for dialect in c99 c11 c17; do
  try gcc c $dialect
  try clang-14 c $dialect
done
try g++ c++ c++17
try clang++-14 c++ c++17
[ -n "$tried" ] || { echo "no compiler found"; exit 1; }
echo "compiled:$tried"
