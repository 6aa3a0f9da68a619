#!/bin/sh
# The other ways to build: without TBB, without OpenMP, without either, and with clang under
# ThreadSanitizer. Runs what depends on them.
set -eu
cd "$(dirname "$0")/.."

# Tests run side by side: threads that wait for work must not take the others' cores.
export OMP_WAIT_POLICY=passive

sh tests/debian_packages.sh g++ clang-14 cmake ninja-build pkg-config libhwy-dev libtbb-dev \
  libcmocka-dev libomp-14-dev libclang-rt-14-dev

# check NAME OPTION...
check() {
  echo "== $1"
  build="build/$1"
  shift
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPARSEKIT_WARNINGS_AS_ERRORS=ON "$@"
  cmake --build "$build"
  # consumer_add_subdirectory compiles the library once more, c_digits trains for long, and what is
  # exhaustive tries all 16-bit numbers and all N of M: none of them asks what differs here.
  ctest --test-dir "$build" --output-on-failure -j "$(nproc)" \
    -R '^(unit_|executors|context|c_|consumer_)' \
    -LE exhaustive -E '^(consumer_add_subdirectory|c_digits)$'
}
check without-tbb -DSPARSEKIT_WITH_TBB=OFF
check without-openmp -DSPARSEKIT_WITH_OPENMP=OFF
check serial -DSPARSEKIT_WITH_TBB=OFF -DSPARSEKIT_WITH_OPENMP=OFF

echo "== tsan"
cmake --preset tsan
cmake --build build/tsan
# What is exhaustive is about numbers; others run the same kernels on threads.
ctest --preset tsan -LE exhaustive -j "$(nproc)"
