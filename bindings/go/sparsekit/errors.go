// SPDX-License-Identifier: Apache-2.0

package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// Status is the kind of a failure. It is an error itself, for errors.Is.
type Status int

// The kinds of failures.
const (
	ErrInvalidArgument  = Status(flat.INVALID_ARGUMENT)  // a value outside its range, or a closed object
	ErrShapeMismatch    = Status(flat.SHAPE_MISMATCH)    // shapes, lengths or counts that do not fit each other
	ErrCoupling         = Status(flat.COUPLING)          // members whose grids do not agree
	ErrOverlap          = Status(flat.OVERLAP)           // one element reached twice, or arrays that share memory
	ErrOutOfBounds      = Status(flat.OUT_OF_BOUNDS)     // a view or an index that reaches outside
	ErrUnsupportedDType = Status(flat.UNSUPPORTED_DTYPE) // a dtype that this argument cannot have
	ErrOutOfMemory      = Status(flat.OUT_OF_MEMORY)     // no memory for scratch or an object
	ErrNotConverged     = Status(flat.NOT_CONVERGED)     // never returned: reports count such blocks
	ErrCancelled        = Status(flat.CANCELLED)         // a function returned Stop
	ErrUnavailable      = Status(flat.UNAVAILABLE)       // not in this build of the library
	ErrInternal         = Status(flat.INTERNAL)          // a defect of the library
)

// Error returns the name of the status, such as "SPK_OVERLAP".
func (s Status) Error() string { return flat.Status_string(int(s)) }

// Error is the failure of a call.
type Error struct {
	Status  Status
	Message string // the argument, what was given and what was expected
}

func (e *Error) Error() string { return e.Status.Error() + ": " + e.Message }

// Is tells whether target is the error's Status.
func (e *Error) Is(target error) bool { return target == error(e.Status) }

// PanicError is what a call returns if a function of the caller's panics in it.
type PanicError = flat.PanicError

// Stop, returned by a function of the caller's, ends the call with ErrCancelled.
var Stop error = flat.Stop
