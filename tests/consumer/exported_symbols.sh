#!/bin/sh
# The library exports the functions that the headers declare, no more, no less.
#     exported_symbols.sh LIBRARY HEADER...
set -eu

# The header without comments and preprocessor lines, one declaration a line.
declared() {
  awk '
    { text = text $0 "\n" }
    END {
      while (match(text, /\/\*([^*]|\*+[^*\/])*\*+\//))
        text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
      gsub(/\\\n/, " ", text)
      gsub(/\n[ \t]*#[^\n]*/, "\n", text)
      gsub(/\n/, " ", text)
      gsub(/;/, "\n", text)
      print text
    }' "$1" | sed -n 's/.*SPK_API [^(]*[ *]\([a-z0-9_]*\)(.*/\1/p' | sort
}

# Names of type A are the version nodes themselves; @@ starts a symbol's version.
exported() {
  nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$1
shift
for header in "$@"; do
  declared "$header" >"$work/declared_here"
  if [ ! -s "$work/declared_here" ]; then
    echo "no declarations found in $header"
    exit 1
  fi
  cat "$work/declared_here" >>"$work/declared_all"
done
sort "$work/declared_all" >"$work/declared"
exported "$library" >"$work/exported"
if ! diff "$work/declared" "$work/exported"; then
  echo "< declared but not exported, > exported but not declared"
  exit 1
fi
echo "$(wc -l <"$work/declared") functions"
