% SPDX-License-Identifier: Apache-2.0
%
% octave-cli install.m TARBALL FOLDER PROGRAM: installs the package in FOLDER and runs PROGRAM with
% it.
arguments = argv();
[tarball, folder, program] = arguments{end - 2:end};
mkdir(folder);
pkg("prefix", folder, folder);
pkg("local_list", fullfile(folder, "packages"));
pkg("install", tarball);
pkg("load", "sparsekit");
source(program);
