#!/bin/sh
# Formatting and static analysis of all sources.
set -eu
cd "$(dirname "$0")/.."

sh tests/debian_packages.sh g++ clang-14 clang-format-14 clang-tidy-14 cmake ninja-build \
  pkg-config libhwy-dev libtbb-dev libomp-14-dev

git ls-files '*.h' '*.hpp' '*.c' '*.cc' '*.cpp' | xargs clang-format-14 --dry-run --Werror

cmake -S . -B build/lint -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang-14 \
  -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DSPARSEKIT_BUILD_TESTS=OFF
# tidy ARGUMENT... < FILES
tidy() {
  xargs -n 4 -P "$(nproc)" clang-tidy-14 --quiet -p build/lint "$@"
}
# Following paths through many functions would take half of the time; what only that finds is left
# to the sanitizers.
git grep -L foreach_target -- 'src/*.cc' | tidy --extra-arg=-Xclang --extra-arg=-analyzer-config \
  --extra-arg=-Xclang --extra-arg=mode=shallow
# Kernels are one text for all instruction sets, and analysed for one of them. They allocate nothing
# and own nothing: following each path of each instantiation would take most of the time.
one_set=
[ "$(uname -m)" != x86_64 ] || one_set="--extra-arg=-DHWY_COMPILE_ONLY_STATIC
  --extra-arg=-march=x86-64-v4 --extra-arg=-maes --extra-arg=-mpclmul"
git grep -l foreach_target -- 'src/*.cc' | tidy --checks='-clang-analyzer-*' $one_set
