// SPDX-License-Identifier: Apache-2.0

package sparsekit

import (
	"errors"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// expect does not end the test: it is also called inside functions that the library calls.
func expect(t *testing.T, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %v, expected %v", got, wanted)
	}
}

func expectStatus(t *testing.T, err error, status Status) {
	t.Helper()
	if !errors.Is(err, status) {
		t.Errorf("got %v, expected %v", err, status)
	}
}

// counting returns 1, 2, 3, ...
func counting(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i + 1)
	}
	return values
}

func blockOf(t *testing.T, values []float32, shape ...int64) *Block {
	view := must[*View](t)(NewView(Of(values), 4, int64(len(values)/4)))
	return must[*Block](t)(NewBlock(view, shape))
}

// expectLive collects garbage until no more objects are alive than expected; finalizers run some
// time after a collection.
func expectLive(t *testing.T, wanted int64) {
	t.Helper()
	for i := 0; i < 200 && LiveHandles() > wanted; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	expect(t, LiveHandles(), wanted)
}

func TestReadmeHasTheExamples(t *testing.T) {
	readme := string(must[[]byte](t)(os.ReadFile("../README.md")))
	program := string(must[[]byte](t)(os.ReadFile("../example/prune/main.go")))
	_, program, _ = strings.Cut(program, "package main")
	if !strings.Contains(readme, "package main"+program) {
		t.Fatal("README.md does not show example/prune/main.go")
	}
}

func TestAddressIsTheSlices(t *testing.T) {
	f32, f64, words := make([]float32, 3), make([]float64, 3), make([]uint16, 3)
	u8, i64 := make([]uint8, 3), make([]int64, 3)
	expect(t, must[uintptr](t)(Of(f32).Address()), uintptr(unsafe.Pointer(&f32[0])))
	expect(t, must[uintptr](t)(Of(f64).Address()), uintptr(unsafe.Pointer(&f64[0])))
	expect(t, must[uintptr](t)(OfF16(words).Address()), uintptr(unsafe.Pointer(&words[0])))
	expect(t, must[uintptr](t)(OfBF16(words[1:]).Address()), uintptr(unsafe.Pointer(&words[1])))
	expect(t, must[uintptr](t)(Of(u8).Address()), uintptr(unsafe.Pointer(&u8[0])))
	expect(t, must[uintptr](t)(Of(i64).Address()), uintptr(unsafe.Pointer(&i64[0])))
}

func TestArrayGivesItsSlice(t *testing.T) {
	values := counting(3)
	array := Of(values)
	array.Float32s()[1] = 7
	expect(t, values, []float32{1, 7, 3})
	expect(t, array.Float64s() == nil, true)
	expect(t, array.Len(), 3)
	expect(t, OfBF16(make([]uint16, 2)).DType().String(), "bf16")
	expect(t, NewArray(DType(1), 4).Len(), 0)
}

func TestHalfWords(t *testing.T) {
	words := []uint16{0x3C00, 0x4000, 0xC200, 0x0000} // 1, 2, -3, 0
	view := must[*View](t)(NewView(OfF16(words), 4))
	must[Report](t)(view.PruneUnstructured(0.5))
	expect(t, words, []uint16{0, 0x4000, 0xC200, 0})
	words = []uint16{0x3F80, 0x4000, 0xC040, 0x0000} // the same as bfloat16
	block := must[*Block](t)(NewBlock(must[*View](t)(NewView(OfBF16(words), 2, 2)), []int64{1, 2}))
	expect(t, must[Array](t)(block.Norms(1)).Float32s(), []float32{3, 3})
}

func TestStatusAndMessage(t *testing.T) {
	_, err := NewStridedView(Of(counting(8)), []int64{2, 2}, []int64{1, 1}, 0)
	expectStatus(t, err, ErrOverlap)
	if errors.Is(err, ErrCoupling) {
		t.Fatal("statuses are not told apart")
	}
	var failure *Error
	expect(t, errors.As(err, &failure), true)
	expect(t, failure.Status, ErrOverlap)
	expect(t, strings.HasPrefix(err.Error(), "SPK_OVERLAP: "), true)
	expect(t, failure.Message != "", true)
}

func TestWrongArraysAreRefused(t *testing.T) {
	values := counting(8)
	_, err := NewView(Of([]int64{1, 2}), 2)
	expectStatus(t, err, ErrUnsupportedDType)
	_, err = NewView(Array{}, 2)
	expectStatus(t, err, ErrUnsupportedDType)
	short := must[*View](t)(NewView(Of(values[:7]), 8))
	_, err = short.PruneUnstructured(0.5)
	expect(t, err != nil, true)
	empty := must[*View](t)(NewView(Of([]float32{}), 8))
	_, err = empty.PruneUnstructured(0.5)
	expectStatus(t, err, ErrInvalidArgument)

	block := blockOf(t, values, 1, 2)
	expectStatus(t, block.ApplyMask(Of([]float32{0, 0, 0, 0})), ErrUnsupportedDType)
	expectStatus(t, block.ApplyMask(Of([]uint8{0, 0, 0})), ErrShapeMismatch)
	_, err = block.HardThreshold(Of([]float32{9}), Into(Of(counting(8)), Of(counting(8))))
	expectStatus(t, err, ErrShapeMismatch)
	_, err = block.HardThreshold(Of([]float32{9}), Into(Of(make([]float64, 8))))
	expectStatus(t, err, ErrUnsupportedDType)
	_, err = block.HardThreshold(Of([]float32{9}), Into(Of(values[1:]), Array{}))
	expect(t, err != nil, true)
	_, err = NewBlock(nil, nil)
	expectStatus(t, err, ErrInvalidArgument)

	_, err = block.Reduce(nil)
	expectStatus(t, err, ErrInvalidArgument)
	_, err = NewCustomSchedule(nil)
	expectStatus(t, err, ErrInvalidArgument)

	// As many numbers as there must be, but not as many for each member.
	uneven := [][]int64{{0}, {1, 0, 1}}
	_, err = CoupleBlocks([]*Block{block, blockOf(t, counting(8), 1, 2)}, uneven)
	expectStatus(t, err, ErrShapeMismatch)
	scope := must[*Scope](t)(NewScope(block, nil))
	_, err = CoupleScopes([]*Scope{scope, scope}, uneven)
	expectStatus(t, err, ErrShapeMismatch)
	_, err = CoupleBlocks([]*Block{block, nil}, nil)
	expectStatus(t, err, ErrInvalidArgument)
}

func TestUnknownOptionIsRefused(t *testing.T) {
	values := counting(8)
	block := blockOf(t, values, 1, 2)
	_, err := block.Norms(2, KeepTies())
	expectStatus(t, err, ErrInvalidArgument)
	_, err = block.HardThreshold(Of([]float32{100}), Bernoulli())
	expectStatus(t, err, ErrInvalidArgument)
	_, err = block.HardThreshold(Of([]float32{100}), Option{})
	expectStatus(t, err, ErrInvalidArgument)
	expect(t, values, counting(8))
}

func TestIntoLeavesTheLeavesAlone(t *testing.T) {
	values, other := counting(8), make([]float32, 8)
	report := must[Report](t)(blockOf(t, values, 1, 2).HardThreshold(Of([]float32{6}), Into(Of(other))))
	expect(t, values, counting(8))
	expect(t, other, []float32{0, 0, 0, 0, 5, 6, 7, 8})
	expect(t, report, Report{Total: 4, Requested: -1, Achieved: 2})
}

func TestContiguousLayout(t *testing.T) {
	// The view is the transpose of a 2 x 3 matrix; the other array lies as the transpose itself.
	values := counting(6)
	view := must[*View](t)(NewStridedView(Of(values), []int64{3, 2}, []int64{1, 3}, 0))
	block := must[*Block](t)(NewBlock(view, nil))
	if err := block.SetData([]Array{Of([]float32{1, 2, 3, 4, 5, 6}).Contiguous()}); err != nil {
		t.Fatal(err)
	}
	expect(t, values, []float32{1, 3, 5, 2, 4, 6})
}

func TestClosingInAnyOrder(t *testing.T) {
	expectLive(t, 0)
	values := counting(8)
	view := must[*View](t)(NewView(Of(values), 4, 2))
	block := must[*Block](t)(NewBlock(view, []int64{1, 2}))
	scope := must[*Scope](t)(NewScope(block, nil))
	for _, object := range []interface{ Close() error }{view, block, block} {
		expect(t, object.Close(), nil)
	}
	must[Report](t)(scope.KeepTop([]int64{1}))
	expect(t, values, []float32{0, 0, 0, 0, 0, 0, 7, 8})
	scope.Close()

	_, err := view.Shape()
	expectStatus(t, err, ErrInvalidArgument)
	_, err = view.PruneNM(1, 1, 2)
	expectStatus(t, err, ErrInvalidArgument)
	_, err = block.Norms(2)
	expectStatus(t, err, ErrInvalidArgument)
	_, err = NewScope(block, nil)
	expectStatus(t, err, ErrInvalidArgument)
	_, err = CoupleScopes([]*Scope{scope}, nil)
	expectStatus(t, err, ErrInvalidArgument)
	expect(t, LiveHandles(), int64(0))
}

func TestClosedContextIsNotTheDefault(t *testing.T) {
	context := must[*Context](t)(NewContext(ContextOptions{Executor: Serial}))
	expect(t, must[Executor](t)(context.Executor()), Serial)
	expect(t, must[int](t)(context.Threads()), 1)
	context.Close()
	_, err := context.Executor()
	expectStatus(t, err, ErrInvalidArgument)
	_, err = blockOf(t, counting(8), 1, 2).Norms(2, In(context))
	expectStatus(t, err, ErrInvalidArgument)
}

func TestZeroObjectsAreRefused(t *testing.T) {
	block := &Block{}
	_, err := block.BlockView(true)
	expectStatus(t, err, ErrInvalidArgument)
	_, err = block.Merged()
	expectStatus(t, err, ErrInvalidArgument)
	_, err = block.Norms(2)
	expectStatus(t, err, ErrInvalidArgument)
}

func TestObjectsMayBeClosedDuringACall(t *testing.T) {
	expectLive(t, 0)
	block := blockOf(t, counting(8), 1, 2)
	live := LiveHandles()
	sums := must[Array](t)(block.Reduce(func(elements []float64) (float64, error) {
		block.Close()
		runtime.GC()
		expect(t, LiveHandles(), live) // released when the call is over
		return elements[0] + elements[1], nil
	}))
	expect(t, sums.Float32s(), []float32{3, 7, 11, 15})
	_, err := block.Numblk()
	expectStatus(t, err, ErrInvalidArgument)
	expectLive(t, 0)
}

func TestErrorOfAFunctionComesOut(t *testing.T) {
	own := errors.New("own")
	block := blockOf(t, counting(8), 1, 2)
	_, err := block.Reduce(func([]float64) (float64, error) { return 0, own })
	expect(t, err, own)
	_, err = block.Reduce(func([]float64) (float64, error) { return 0, Stop })
	expectStatus(t, err, ErrCancelled)
	if sums, err := block.Reduce(func([]float64) (float64, error) { return 2, nil }); err != nil {
		t.Fatal(err)
	} else {
		expect(t, sums.Float32s(), []float32{2, 2, 2, 2})
	}
}

func TestPanicOfAFunctionComesOutAsAnError(t *testing.T) {
	own := errors.New("own")
	_, err := blockOf(t, counting(8), 1, 2).Reduce(func([]float64) (float64, error) { panic(own) })
	var panicked *PanicError
	expect(t, errors.As(err, &panicked), true)
	expect(t, panicked.Value, any(own))
	expect(t, errors.Is(err, own), true)
	expect(t, strings.Contains(string(panicked.Stack), "TestPanicOfAFunction"), true)
}

func TestFailureInsideAFunctionIsItsOwn(t *testing.T) {
	serial := must[*Context](t)(NewContext(ContextOptions{Executor: Serial}))
	defer serial.Close()
	block := blockOf(t, counting(8), 1, 2)
	other := blockOf(t, counting(8), 1, 2)
	sums := must[Array](t)(block.Reduce(func(elements []float64) (float64, error) {
		norms, err := other.Norms(1, In(serial))
		_, refused := other.Norms(-1, In(serial))
		expectStatus(t, refused, ErrInvalidArgument)
		return elements[0] + float64(norms.Float32s()[0]), err
	}))
	expect(t, sums.Float32s(), []float32{4, 6, 8, 10})
	// The context that is in use is refused.
	_, err := block.Reduce(func([]float64) (float64, error) {
		_, err := other.Norms(1)
		return 0, err
	})
	expect(t, err != nil, true)
}

func TestProgress(t *testing.T) {
	calls := 0
	context := must[*Context](t)(NewContext(ContextOptions{Progress: func(done, total int64) error {
		calls++
		if done < 0 || done > total {
			t.Errorf("%d of %d done", done, total)
		}
		return nil
	}}))
	defer context.Close()
	block := blockOf(t, counting(1<<18), 1, 2)
	must[Array](t)(block.Norms(2, In(context)))
	expect(t, calls > 0, true)

	stop := func(int64, int64) error { return Stop }
	stopping := must[*Context](t)(NewContext(ContextOptions{Progress: stop}))
	defer stopping.Close()
	_, err := block.Norms(2, In(stopping))
	expectStatus(t, err, ErrCancelled)

	own := errors.New("own")
	late := must[*Context](t)(NewContext(ContextOptions{Progress: func(done, _ int64) error {
		if done > 0 {
			return own
		}
		return nil
	}}))
	defer late.Close()
	_, err = block.Norms(2, In(late))
	expect(t, err, own)
}

// grow makes the goroutine's stack grow, and so move.
func grow(depth int) int {
	var frame [1024]byte
	frame[depth%1024] = 1
	if depth == 0 {
		return int(frame[0])
	}
	return grow(depth-1) + int(frame[depth%1024])
}

func TestStackMayMoveDuringACall(t *testing.T) {
	done := make(chan []float32)
	go func() {
		values, into := [8]float32{1, 2, 3, 4, 5, 6, 7, 8}, [8]float32{}
		context := must[*Context](t)(NewContext(ContextOptions{Progress: func(int64, int64) error {
			grow(2000)
			return nil
		}}))
		defer context.Close()
		view := must[*View](t)(NewView(Of(values[:]), 8))
		must[Report](t)(view.PruneUnstructured(0.5, Into(Of(into[:])), In(context)))
		done <- into[:]
	}()
	expect(t, <-done, []float32{0, 0, 0, 0, 5, 6, 7, 8})
}

func TestMaskingWithFunctions(t *testing.T) {
	expectLive(t, 0)
	weights, mask := counting(8), make([]uint8, 8)
	view := must[*View](t)(NewView(Of(weights), 2, 4))
	schedule := must[*Schedule](t)(NewCustomSchedule(func(int64) (float64, error) { return 0.25, nil }))
	var masking *Masking
	masking = must[*Masking](t)(NewMasking(schedule, MaskingOptions{
		Prune: PruneCallback, Grow: GrowCallback, Redistribute: RedistributeCallback,
		PruneFn: func(layer int, rate float64, requested int64) error {
			expect(t, []any{layer, rate, requested}, []any{0, 0.25, int64(2)})
			mask[6], mask[7] = 0, 0
			return nil
		},
		StatisticFn: func(layer int) (float64, error) {
			count, err := masking.LayerCount()
			return float64(count), err
		},
		GrowFn: func(layer int, requested int64) error {
			expect(t, requested, int64(1)) // floor(0.99 x 2 inactive)
			mask[6], weights[6] = 1, 0.5
			return nil
		},
	}))
	must[int](t)(masking.Add("w", view, Layer{Mask: Of(mask)}))
	schedule.Close() // the masking still calls its function
	view.Close()
	for i := range mask {
		mask[i] = 1
	}
	expect(t, masking.Initialise(1, InitLotteryTicket), nil)
	report := must[UpdateReport](t)(masking.Update())
	expect(t, report, UpdateReport{Rate: 0.25, RequestedRemoved: 2, Removed: 2, RequestedGrown: 1,
		Grown: 1, Nonzeros: 7, Residual: 1})
	expect(t, weights, []float32{1, 2, 3, 4, 5, 6, 0.5, 0})
	expect(t, must[LayerStats](t)(masking.Stats()).Nonzeros, int64(7))
	_, err := masking.LayerStats(-1)
	expectStatus(t, err, ErrOutOfBounds)
	_, err = masking.LayerStats(1)
	expectStatus(t, err, ErrOutOfBounds)
	masking = nil
	expectLive(t, 0) // although StatisticFn refers to the masking
}

func TestSavedStateGoesOn(t *testing.T) {
	make2 := func() (*Masking, []float32, []uint8) {
		weights, mask := counting(64), make([]uint8, 64)
		schedule := must[*Schedule](t)(NewCosineSchedule(0.3, 100, 0, -1))
		masking := must[*Masking](t)(NewMasking(schedule, MaskingOptions{Seed: 7, Grow: GrowRandom}))
		must[int](t)(masking.Add("w", must[*View](t)(NewView(Of(weights), 8, 8)), Layer{Mask: Of(mask)}))
		return masking, weights, mask
	}
	first, weights, mask := make2()
	expect(t, first.Initialise(0.5, InitErdosRenyi), nil)
	blob := must[[]byte](t)(first.Save())
	second, weights2, mask2 := make2()
	copy(weights2, weights)
	copy(mask2, mask)
	expect(t, second.Restore(blob), nil)
	must[UpdateReport](t)(first.Update())
	must[UpdateReport](t)(second.Update())
	expect(t, mask2, mask)
	blob[len(blob)/2] ^= 1
	expect(t, second.Restore(blob) != nil, true)
	expect(t, second.Restore(nil) != nil, true)
}

func TestGarbageIsCollected(t *testing.T) {
	expectLive(t, 0)
	for i := 0; i < 300; i++ {
		values := counting(64)
		// Only the scope is kept, with the array through it.
		scope := must[*Scope](t)(NewScope(blockOf(t, values, 1, 4), nil))
		values = nil
		if i%20 == 0 {
			runtime.GC()
		}
		norms := must[Array](t)(scope.Norms(math.Inf(1))).Float32s()
		for block, norm := range norms {
			expect(t, norm, float32(4*block+4))
		}
	}
	expectLive(t, 0)
}

func TestManyGoroutines(t *testing.T) {
	block := blockOf(t, counting(4096), 1, 16)
	wanted := must[Array](t)(block.Norms(1)).Float32s()
	var group sync.WaitGroup
	for g := 0; g < 8; g++ {
		group.Add(1)
		go func(p float64) {
			defer group.Done()
			for i := 0; i < 50; i++ {
				_, err := block.Norms(p)
				if (p < 0) != errors.Is(err, ErrInvalidArgument) {
					t.Errorf("p = %v: %v", p, err)
				}
			}
		}(float64(1 - 2*(g%2)))
	}
	group.Wait()
	expect(t, must[Array](t)(block.Norms(1)).Float32s(), wanted)
}

// BenchmarkCall measures what a call costs beside the library's work.
func BenchmarkCall(b *testing.B) {
	view, err := NewView(Of(counting(8)), 4, 2)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("fact", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			view.Numel()
		}
	})
	b.Run("prune", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			view.PruneNM(1, 1, 2)
		}
	})
}
