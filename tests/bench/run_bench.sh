#!/bin/sh
# Builds the benchmarks and runs them; flags are those of the program (--help lists them). Writes
# results.txt, results.json, table.md, limits.md and the plot into build/bench, and those of
# --size-sweep (no tables) into build/bench/size_sweep. On Debian 12 it installs what it needs.
set -eu
cd "$(dirname "$0")/../.."

sh tests/debian_packages.sh g++ cmake ninja-build pkg-config libhwy-dev libtbb-dev libcli11-dev \
  nlohmann-json3-dev python3-matplotlib

cmake --preset bench
cmake --build build/bench --target bench

bench=build/bench/tests/bench/bench
out=build/bench
plot=plot.py
picture=ratios
for flag in "$@"; do
  case "$flag" in
    -h | --help | --list) exec "$bench" "$@" ;;
    --size-sweep)
      out=build/bench/size_sweep
      plot=plot_sizes.py
      picture=sizes
      ;;
  esac
done

json="$out/results.json"

# Debian's packages belong to the system's Python.
python() {
  script="$1"
  shift
  /usr/bin/python3 "tests/bench/$script" "$@"
}

# What the same operations take in the caches of one thread is arithmetic. 1: calls failed, as
# above, and the table has less to say.
tables() {
  python table.py "$json" >"$out/table.md"
  "$bench" --executors serial --dtypes f32 --sizes 256KiB --cache warm --budget 0.2 \
    --json "$out/in_caches.json" >"$out/in_caches.txt" || [ $? -eq 1 ]
  python limits.py "$json" "$out/in_caches.json" >"$out/limits.md"
}

draw() {
  python "$plot" "$json" "$out/$picture.svg" "$out/$picture.png"
  [ "$picture" = sizes ] || tables
  echo "wrote to $out"
}

mkdir -p "$out"
status=0
"$bench" --text "$out/results.txt" --json "$json" "$@" || status=$?
# 1: calls failed, and the rest is worth drawing. Anything above: there is nothing.
[ "$status" -gt 1 ] || draw
exit "$status"
