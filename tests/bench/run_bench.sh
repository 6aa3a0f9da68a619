#!/bin/sh
# Builds the benchmarks and runs them; flags are those of the program (--help lists them). Writes
# results.txt, results.json, table.md and the plot into build/bench, and those of --size-sweep (no
# table.md) into build/bench/size_sweep. On Debian 12 it installs what it needs.
set -eu
cd "$(dirname "$0")/../.."

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcli11-dev \
  nlohmann-json3-dev python3-matplotlib

cmake --preset bench
cmake --build build/bench --target bench

out=build/bench
plot=plot.py
picture=ratios
for flag in "$@"; do
  case "$flag" in
    -h | --help | --list) exec build/bench/tests/bench/bench "$@" ;;
    --size-sweep)
      out=build/bench/size_sweep
      plot=plot_sizes.py
      picture=sizes
      ;;
  esac
done

# Debian's packages belong to the system's Python.
draw() {
  json="$out/results.json"
  /usr/bin/python3 "tests/bench/$plot" "$json" "$out/$picture.svg" "$out/$picture.png"
  [ "$picture" = sizes ] || /usr/bin/python3 tests/bench/table.py "$json" >"$out/table.md"
  echo "wrote to $out"
}

mkdir -p "$out"
status=0
build/bench/tests/bench/bench --text "$out/results.txt" --json "$out/results.json" "$@" || status=$?
# 1: calls failed, and the rest is worth drawing. Anything above: there is nothing.
[ "$status" -gt 1 ] || draw
exit "$status"
