#!/bin/sh
# Builds the library and the example `digits`, and runs it. On Debian 12 it installs what it needs.
set -eu
cd "$(dirname "$0")/../.."

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev

cmake -S . -B build/digits -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPARSEKIT_BUILD_TESTS=OFF
cmake --build build/digits --target digits
exec build/digits/bindings/c/digits
