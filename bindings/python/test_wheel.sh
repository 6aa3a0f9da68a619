#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel, installs it in a fresh environment, and runs conformance and tests there, away
# from the source tree: test_wheel.sh [folder for everything, default a new temporary one]
# Needs python3 (or $PYTHON) with venv, a C++ compiler, Highway, and a package index for pip.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
if [ $# -gt 0 ]; then
  work=$1
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
work=$(cd "$work" && pwd)
unset PYTHONPATH

"$python" -m venv --clear "$work/env"
rm -rf "$work/wheels"
"$work/env/bin/pip" --quiet wheel --no-deps --wheel-dir "$work/wheels" "$here"
set -- "$work"/wheels/sparsekit-*.whl
"$work/env/bin/pip" --quiet install "$1[test]"

# Copies, so that nothing can be found beside the scripts.
rm -rf "$work/suite"
mkdir "$work/suite"
cp -r "$here/../conformance" "$here/conformance.py" "$here/example.py" "$here/README.md" \
  "$here/tests" "$work/suite"
cd "$work/suite"
"$work/env/bin/python" -c 'import sparsekit; print(sparsekit.__file__, sparsekit.build_info())'
"$work/env/bin/python" example.py
"$work/env/bin/python" conformance/generate.py cases
"$work/env/bin/python" conformance/run.py cases results -- "$work/env/bin/python" conformance.py
"$work/env/bin/python" -m pytest -q -rs -p no:cacheprovider tests
