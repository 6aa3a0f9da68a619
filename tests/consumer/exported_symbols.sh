#!/bin/sh
# The library exports the functions that the header declares, no more, no less.
#     exported_symbols.sh HEADER LIBRARY
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
declared "$1" >"$work/declared"
exported "$2" >"$work/exported"
if [ ! -s "$work/declared" ]; then
  echo "no declarations found in $1"
  exit 1
fi
if ! diff "$work/declared" "$work/exported"; then
  echo "< declared but not exported, > exported but not declared"
  exit 1
fi
echo "$(wc -l <"$work/declared") functions"
