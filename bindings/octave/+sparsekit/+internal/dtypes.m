% SPDX-License-Identifier: Apache-2.0

% dtypes() describes the dtypes: their names in NAMES, numbers in NUMBERS, and the classes that hold
% their elements in CLASSES.
function [names, numbers, classes] = dtypes()
  names = {"f32", "f64", "f16", "bf16", "u8", "i64"};
  numbers = [0x220, 0x240, 0x210, 0x410, 0x108, 0x040];
  classes = {"single", "double", "uint16", "uint16", "uint8", "int64"};
end
