#!/bin/sh
# Builds the library and runs all its tests, first optimised, then under AddressSanitizer and
# UndefinedBehaviorSanitizer. On Debian 12 it installs what it needs.
set -eu
cd "$(dirname "$0")/.."

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcmocka-dev

for preset in release asan; do
  echo "== $preset"
  cmake --preset "$preset"
  cmake --build "build/$preset"
  ctest --test-dir "build/$preset" --output-on-failure
done
