#!/bin/sh
# Installs those of the named Debian packages that are missing; quiet when none is.
#     debian_packages.sh PACKAGE...
# On a system without dpkg it does nothing: the build then says what it lacks.
set -eu

installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

command -v dpkg-query >/dev/null || exit 0
missing=
for package in "$@"; do
  installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing:$missing"
as_root apt-get update -qq
# A list of words, hence unquoted.
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
