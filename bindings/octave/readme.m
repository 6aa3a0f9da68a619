% SPDX-License-Identifier: Apache-2.0
%
% Runs each piece of Octave code in README.md by itself.
1;

function run(code)
  eval(code);
end

function main(page)
  pieces = regexp(fileread(page), '(?<=\n```octave\n).*?(?=\n```\n)', "match");
  assert(numel(pieces) > 0);
  for piece = pieces
    run(piece{1});
  end
  printf("%d pieces of code ran\n", numel(pieces));
end

main(fullfile(fileparts(mfilename("fullpathext")), "README.md"));
