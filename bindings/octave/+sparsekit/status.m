% SPDX-License-Identifier: Apache-2.0

% [NAME, NUMBER] = sparsekit.status(ERR) gives the library's status of an error that was caught,
% such as "SPK_OVERLAP" and 4, from its identifier, sparsekit:overlap. Errors of others give "" and
% -1.
function [name, number] = status(err)
  name = "";
  number = -1;
  prefix = "sparsekit:";
  if strncmp(err.identifier, prefix, numel(prefix))
    short = toupper(err.identifier(numel(prefix) + 1:end));
    name = ["SPK_" short];
    number = sparsekit.internal.constant(short);
  end
end
