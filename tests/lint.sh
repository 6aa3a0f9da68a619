#!/bin/sh
# Formatting and static analysis of all sources.
set -eu
cd "$(dirname "$0")/.."

sh tests/debian_packages.sh g++ clang-14 clang-format-14 clang-tidy-14 libhwy-dev libtbb-dev \
  libomp-14-dev

git ls-files '*.h' '*.hpp' '*.c' '*.cc' '*.cpp' | xargs clang-format-14 --dry-run --Werror

# lint ROOM CHECKS COMPILER-OPTION...
# Headers would take most of the time if each source were analysed on its own. As one text, two
# sources of a room may not give one name to different things, either.
lint() {
  text="build/lint/$1.cc"
  checks="$2"
  {
    echo '// NOLINTBEGIN(bugprone-suspicious-include)'
    git ls-files "src/$1/*.cc" | sed "s|.*|#include \"$PWD/&\"|"
    echo '// NOLINTEND(bugprone-suspicious-include)'
  } > "$text"
  shift 2
  clang-tidy-14 --quiet --checks="$checks" "$text" -- -std=c++20 "-I$PWD/include" "-I$PWD/src" \
    -fopenmp -DSPK_BUILDING -DSPK_WITH_TBB -DSPK_WITH_OPENMP "$@"
}
mkdir -p build/lint

# Some builds compile file by file: each has to include what it needs.
git ls-files 'src/*/*.cc' | grep -v '^src/kernels/' |
  xargs -P "$(nproc)" -n 1 clang++-14 -std=c++20 -fsyntax-only -Wall -Wextra -Wshadow -Werror \
    -Iinclude -Isrc -fopenmp -DSPK_BUILDING -DSPK_WITH_TBB -DSPK_WITH_OPENMP

# Kernels are one text for all instruction sets, and analysed for one of them. They allocate nothing
# and own nothing: following each path of each instantiation would take most of the time.
one_set=-DHWY_COMPILE_ONLY_STATIC
[ "$(uname -m)" != x86_64 ] || one_set="$one_set -march=x86-64-v4 -maes -mpclmul"
lint kernels '-clang-analyzer-*' $one_set &
kernels=$!
# Following paths through many functions would take half of the time; what only that finds is left
# to the sanitizers.
shallow="-Xclang -analyzer-opt-analyze-headers -Xclang -analyzer-config -Xclang mode=shallow"
for room in capi core parallel training; do
  lint "$room" '' $shallow
done
wait "$kernels"
