# SPDX-License-Identifier: Apache-2.0

# Prunes a 64 x 128 matrix to 2:4 along its rows, in place.
require "sparsekit"

weights = Array.new(64 * 128) { |i| i * 37 % 101 + 1 }.pack("f*")

SparseKit::View.open(weights, [64, 128], dtype: :f32) do |view|
  report = view.prune_nm(1, 2, 4)
  puts "kept #{report.achieved} of #{report.total}" # kept 4096 of 8192
end
