#!/bin/sh
# Builds one C program against the installed library with a compiler and pkg-config alone, runs it.
#     consume.sh MODE SOURCE LIBDIR PROGRAM
# MODE: shared, static, or dlopen (a program that takes the library's file as its argument).
set -eu
mode=$1
source=$2
libdir=$3
program=$4
export PKG_CONFIG_PATH="$libdir/pkgconfig"
compile="${CC:-cc} -O1 -pedantic -Wall -Wextra -Werror"

needs_library() {
  readelf -d "$1" | grep -q 'NEEDED.*libsparsekit'
}

# $(pkg-config ...) and $compile are lists of words, hence unquoted.
case $mode in
shared)
  $compile -std=c99 "$source" $(pkg-config --cflags --libs sparsekit) -o "$program"
  needs_library "$program" || { echo "the program does not load libsparsekit.so"; exit 1; }
  LD_LIBRARY_PATH="$libdir" "$program"
  ;;
static)
  # Both libraries are installed side by side, so the linker is told which.
  flags=$(pkg-config --static --cflags --libs sparsekit | sed 's/-lsparsekit/-l:libsparsekit.a/')
  $compile -std=c99 -DSPK_STATIC "$source" $flags -o "$program"
  if needs_library "$program"; then echo "the program loads libsparsekit.so"; exit 1; fi
  "$program"
  ;;
dlopen)
  $compile -std=c11 "$source" -ldl -o "$program"
  if needs_library "$program"; then echo "the program loads libsparsekit.so"; exit 1; fi
  "$program" "$libdir/libsparsekit.so"
  ;;
*)
  echo "unknown mode: $mode"
  exit 2
  ;;
esac
