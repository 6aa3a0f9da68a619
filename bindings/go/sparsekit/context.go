// SPDX-License-Identifier: Apache-2.0

package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// Executor is what runs the parallel loops of a call.
type Executor int

// The executors. Which are there depends on how the library was built.
const (
	DefaultExecutor = Executor(flat.EXECUTOR_DEFAULT)
	Serial          = Executor(flat.EXECUTOR_SERIAL)
	TBB             = Executor(flat.EXECUTOR_TBB)
	OpenMP          = Executor(flat.EXECUTOR_OPENMP)
)

// Available tells whether contexts with this executor can be created.
func (e Executor) Available() bool { return flat.Executor_available(int(e)) == 1 }

// ContextOptions say how calls run. The zero value means the defaults.
type ContextOptions struct {
	Executor Executor
	// Threads is how many a call may use; 0: as many as the process may.
	Threads int
	// Progress is called now and then, on the goroutine that made the call, with the share of work
	// done. An error cancels the call, which returns it; Stop gives ErrCancelled. Every block is
	// then either untouched or finished. It may not make calls with this context, nor, inside a
	// call without one, without one.
	Progress func(done, total int64) error
}

// Context is how calls run: executor, threads, progress. It is given to a call with In, and
// optional everywhere.
type Context struct {
	handle   *handle
	progress *function
}

// NewContext creates a context. It fails with ErrUnavailable for an executor that is not built in.
func NewContext(options ContextOptions) (*Context, error) {
	progress, err := progressFunction(options.Progress)
	if err != nil {
		return nil, err
	}
	c := call{}
	c.with(progress)
	h, err := create(&c, func() uintptr {
		return flat.Context_create(int(options.Executor), options.Threads, progress.callback())
	}, releaseContext)
	if err != nil {
		return nil, err
	}
	return &Context{h, progress}, nil
}

func progressFunction(progress func(done, total int64) error) (*function, error) {
	if progress == nil {
		return nil, nil
	}
	return newFunction(true, func(numbers []float64) (float64, error) {
		return 0, progress(int64(numbers[0]), int64(numbers[1]))
	})
}

// Close releases the context.
func (c *Context) Close() error {
	c.handle.close()
	return nil
}

// Executor returns the executor that calls with this context use.
func (c *Context) Executor() (Executor, error) {
	executor, err := contextFact(c, flat.Context_executor)
	return Executor(executor), err
}

// Threads returns how many threads calls with this context use.
func (c *Context) Threads() (int, error) { return contextFact(c, flat.Context_threads) }

// Trim frees the scratch memory that idle calls left in the context for reuse.
func (c *Context) Trim() error {
	_, err := contextFact(c, nothing(flat.Context_trim))
	return err
}

// contextFact refuses a closed context, which would otherwise be taken for the process default.
func contextFact[T any](context *Context, get func(uintptr) T) (T, error) {
	c := &call{}
	return ask(c, c.in(context), get)
}
