#!/bin/sh
# Builds the library and runs all its tests and those of the Python binding, first optimised, then
# (without Python) under AddressSanitizer and UndefinedBehaviorSanitizer. On Debian 12 it installs
# what it needs. tests/run_bindings.sh does the other languages.
set -eu
cd "$(dirname "$0")/.."

# Tests run side by side: threads that wait for work must not take the others' cores.
export OMP_WAIT_POLICY=passive

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcmocka-dev \
  swig4.0 python3-dev python3-numpy python3-pytest

# run PRESET LANGUAGE-BINDINGS
run() {
  echo "== $1"
  cmake --preset "$1" -DSPARSEKIT_BINDINGS="$2" -DSPARSEKIT_BINDINGS_REQUIRED=ON
  cmake --build "build/$1"
  ctest --test-dir "build/$1" --output-on-failure -j "$(nproc)"
}
run release python
run asan c
