#!/bin/sh
# Builds the library and times it beside PyTorch and NumPy; flags are those of side_by_side.py. On
# Debian 12 it installs what it needs.
set -eu
cd "$(dirname "$0")/../.."

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcli11-dev \
  nlohmann-json3-dev python3-torch python3-numpy

cmake --preset bench
cmake --build build/bench --target sparsekit

# Debian's packages belong to the system's Python.
exec /usr/bin/python3 tests/bench/side_by_side.py build/bench/libsparsekit.so \
  --markdown build/bench/side_by_side.md "$@"
