% SPDX-License-Identifier: Apache-2.0

% native() gives the module that SWIG made, which has the library's functions and constants.
function module = native()
  persistent loaded
  if isempty(loaded)
    loaded = load_module();
  end
  module = loaded;
end

% SWIG makes every function and constant known everywhere, `version` among them; here they are
% reached through the module alone.
function module = load_module()
  globals = who("global");
  functions = {autoload().function};
  sparsekit_native();
  global sparsekit_native
  module = sparsekit_native;
  for name = setdiff(who("global"), globals)'
    clear("-global", name{1});
  end
  loaded = autoload();
  [~, added] = setdiff({loaded.function}, functions);
  for entry = added(:)'
    autoload(loaded(entry).function, loaded(entry).file, "remove");
  end
  atexit("__swig_atexit__", false);
end
