// SPDX-License-Identifier: Apache-2.0

// Package sparsekit brings structured sparsity to slices that you own: pruning units of any shape,
// exact selection, group soft thresholding, N:M patterns and dynamic sparse training.
//
// Prune a 64 x 128 matrix to 2:4 along its rows, in place:
//
//	weights := make([]float32, 64*128)
//	view, err := sparsekit.NewView(sparsekit.Of(weights), 64, 128)
//	if err != nil { ... }
//	defer view.Close()
//	report, err := view.PruneNM(1, 2, 4)
//
// A View says how elements lie in a slice. A Block cuts a view into a grid of equal units, or
// couples blocks of several views. A Scope groups blocks that compete. A Masking keeps layers
// sparse while you train them. The words, and what each operation does exactly, are those of the C
// headers sparsekit.h and training.h.
//
// # Memory
//
// Slices are never copied: the library reads and writes the memory of the slice that you gave,
// which the view keeps alive. Results are new slices.
//
// # Errors
//
// Every call that can fail returns an error, an *Error with status and message:
// errors.Is(err, sparsekit.ErrOverlap) tells them apart. An error that a function of yours returns
// comes out of the call as it is; if it panics, a *PanicError does.
//
// # Closing
//
// Close gives memory back at once; objects that are not closed are left to the garbage collector.
// Objects may be closed in any order, more than once, and while a call uses them, which then
// finishes first. A closed object fails with ErrInvalidArgument.
//
// # Goroutines
//
// Views, blocks, scopes and contexts may be used by many goroutines at once, as long as no two of
// them write the same elements. A schedule and a masking change with use: one call at a time.
package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// Version returns the version of the loaded library, 10000 major + 100 minor + patch.
func Version() int { return flat.Version() }

// BuildInfo returns a line for bug reports: version, executors and instruction sets.
func BuildInfo() string { return flat.Build_info() }

// LiveHandles returns how many objects of the library are alive in the process.
func LiveHandles() int64 { return flat.Live_handles() }
