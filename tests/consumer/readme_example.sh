#!/bin/sh
# The README's C example is the program example.c, it holds the header's ten lines, and it builds
# and runs against the installed library.
#     readme_example.sh README EXAMPLE HEADER LIBDIR PROGRAM
set -eu
readme=$1
example=$2
header=$3
libdir=$4
program=$5

awk '/^```/ { inside = ($0 == "```c"); next } inside' "$readme" >"$program.c"
if ! diff "$program.c" "$example"; then
  echo "the README's example is not $example"
  exit 1
fi

# The header's example: the indented lines of its opening comment, up to the end of the call.
sed -n '/ten-line example/,/The tour/s/^ \*     //p' "$header" >"$program.header"
[ -s "$program.header" ] || { echo "no example found in $header"; exit 1; }
while IFS= read -r line; do
  if ! sed 's/^  //' "$example" | grep -qxF -- "$line"; then
    echo "the header's example has a line that the README's has not: $line"
    exit 1
  fi
done <"$program.header"

PKG_CONFIG_PATH="$libdir/pkgconfig"
export PKG_CONFIG_PATH
${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror "$program.c" \
  $(pkg-config --cflags --libs sparsekit) -o "$program"
LD_LIBRARY_PATH="$libdir" "$program"
