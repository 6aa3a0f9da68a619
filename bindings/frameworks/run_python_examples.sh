#!/bin/sh
# Runs Python examples in a virtual environment with the packages of requirements.txt.
#     run_python_examples.sh FOLDER [EXAMPLE [ARGUMENT ...]]
# FOLDER is where the environment is, or is made if need be; without an example, that is all.
# PYTHONPATH leads to the package sparsekit; PYTHON is the interpreter, python3 by default.
# Exit code 77: the packages could not be installed.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -gt 0 ] || { sed -n '2,6s/^# *//p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift

install_packages() {
  "${PYTHON:-python3}" -m venv "$folder" &&
    "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 \
      -r "$here/requirements.txt" &&
    cp "$here/requirements.txt" "$folder/"
}

cmp -s "$here/requirements.txt" "$folder/requirements.txt" || install_packages || exit 77
[ $# -gt 0 ] || exit 0
export PYTHONPATH="$here/common${PYTHONPATH:+:$PYTHONPATH}"
exec "$folder/bin/python" "$@"
