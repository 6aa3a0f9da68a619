module github.com/sparsekit/sparsekit/bindings/go

go 1.19
