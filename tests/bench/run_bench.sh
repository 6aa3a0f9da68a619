#!/bin/sh
# Builds the benchmarks and runs them; flags are those of the program (--help lists them). Writes
# results.txt, results.json, table.md and the plot into build/bench. On Debian 12 it installs what
# it needs.
set -eu
cd "$(dirname "$0")/../.."

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcli11-dev \
  nlohmann-json3-dev python3-matplotlib

cmake --preset bench
cmake --build build/bench --target bench

for flag in "$@"; do
  case "$flag" in
    -h | --help | --list) exec build/bench/tests/bench/bench "$@" ;;
  esac
done

out=build/bench
"$out/tests/bench/bench" --text "$out/results.txt" --json "$out/results.json" "$@"
/usr/bin/python3 tests/bench/table.py "$out/results.json" >"$out/table.md"
/usr/bin/python3 tests/bench/plot.py "$out/results.json" "$out/ratios.svg" "$out/ratios.png"
echo "wrote $out/results.txt, results.json, table.md, ratios.svg and ratios.png"
