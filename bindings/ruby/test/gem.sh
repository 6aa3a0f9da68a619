#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gem.sh SOURCES INSTALLED: builds the gem, installs it, and runs the example with it.
set -eu
rm -rf "$2"
cd "$1"
gem build sparsekit.gemspec
gem install --local --no-document --install-dir "$2" sparsekit-0.1.0.gem
GEM_PATH="$2" ruby -W example/prune.rb | grep -x 'kept 4096 of 8192'
