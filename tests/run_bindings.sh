#!/bin/sh
# Builds the bindings of all languages and runs their tests: the conformance suite in each, examples,
# and what only that language can test. On Debian 12 it installs what it needs.
set -eu
cd "$(dirname "$0")/.."

# Tests run side by side: threads that wait for work must not take the others' cores.
export OMP_WAIT_POLICY=passive

# A language's own distribution serves as well as Debian's.
packages=
unless() {
  command -v "$1" >/dev/null || packages="$packages $2"
}
unless go golang-go
unless javac default-jdk-headless
unless node nodejs
unless npm npm
unless rustc rustc

# A list of words, hence unquoted.
sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcmocka-dev \
  swig4.0 python3-dev python3-numpy python3-pytest python3-venv python3-pip mono-mcs mono-runtime \
  ruby ruby-dev ruby-narray ruby-minitest lua5.4 liblua5.4-dev luajit libluajit-5.1-dev perl libperl-dev pdl \
  octave octave-dev libdlib-dev $packages

# In the folder of the release build, whose library serves.
cmake --preset release -DSPARSEKIT_BINDINGS=all -DSPARSEKIT_BINDINGS_REQUIRED=ON
cmake --build build/release
ctest --test-dir build/release --output-on-failure -j "$(nproc)" -L bindings

sh bindings/python/test_wheel.sh build/wheel
