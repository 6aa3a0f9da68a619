# SPDX-License-Identifier: Apache-2.0

# To be built where CMake puts it, beside what SWIG generates (ext/sparsekit/flat_wrap.c).

Gem::Specification.new do |spec|
  spec.name = "sparsekit"
  spec.version = "0.1.0"
  spec.summary = "Structured sparsity on arrays that you own"
  spec.description = "Pruning units of any shape, exact selection, group soft thresholding, N:M " \
                     "patterns and dynamic sparse training, on Strings and NArrays, in place."
  spec.authors = ["The SparseKit authors"]
  spec.homepage = "https://github.com/sparsekit/sparsekit"
  spec.license = "Apache-2.0"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir["lib/**/*.rb", "ext/**/*.{rb,c,h}", "example/*.rb", "README.md"]
  spec.extensions = ["ext/sparsekit/extconf.rb"]
end
