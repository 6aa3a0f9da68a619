#!/bin/sh
# Installs the built library into an empty prefix.
#     install.sh CMAKE BUILD_DIR PREFIX CONFIG
set -eu
rm -rf "$3"
"$1" --install "$2" --prefix "$3" ${4:+--config "$4"}
