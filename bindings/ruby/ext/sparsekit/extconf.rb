# SPDX-License-Identifier: Apache-2.0

require "mkmf"

unless pkg_config("sparsekit")
  abort "sparsekit is not installed, or PKG_CONFIG_PATH does not say where"
end
# The library may lie outside the system's folders.
$LDFLAGS << " -Wl,-rpath,#{pkg_config('sparsekit', 'variable=libdir')}"
$warnflags = "-w" # generated code

# NArray's header lies beside its library; without it Strings are the arrays.
narray = $LOAD_PATH.find { |folder| File.exist?(File.join(folder, "narray.h")) }
narray ||= Gem.find_files("narray.h").map { |header| File.dirname(header) }.first
if narray
  $INCFLAGS << " -I#{narray}"
  $defs << "-DHAVE_NARRAY_H"
end

create_makefile("sparsekit/flat")
