// SPDX-License-Identifier: Apache-2.0

package sparsekit

import "github.com/sparsekit/sparsekit/bindings/go/internal/flat"

// PruneMode says which weights an update removes.
type PruneMode int

// The prune modes. The structured ones remove whole kernels: what the dimensions after the first
// two hold.
const (
	PruneMagnitude           = PruneMode(flat.PRUNE_MAGNITUDE)             // smallest |w| of each layer
	PruneGlobalMagnitude     = PruneMode(flat.PRUNE_GLOBAL_MAGNITUDE)      // smallest |w| of all layers together
	PruneStructMagnitudeMean = PruneMode(flat.PRUNE_STRUCT_MAGNITUDE_MEAN) // kernels of smallest |mean w|
	PruneStructMagnitudeMax  = PruneMode(flat.PRUNE_STRUCT_MAGNITUDE_MAX)  // ... |max w|
	PruneStructMagnitudeMin  = PruneMode(flat.PRUNE_STRUCT_MAGNITUDE_MIN)  // ... |min w|
	PruneStructCriterion     = PruneMode(flat.PRUNE_STRUCT_CRITERION)      // ... |PruneCriterion(w)|
	PruneCallback            = PruneMode(flat.PRUNE_CALLBACK)              // what PruneFn clears in the mask
)

// RedistributeMode says how the places that became free are shared among layers.
type RedistributeMode int

// The redistribution modes: in proportion to a statistic of each layer.
const (
	RedistributeNone     = RedistributeMode(flat.REDISTRIBUTE_NONE)     // each layer regrows what it lost
	RedistributeNonzero  = RedistributeMode(flat.REDISTRIBUTE_NONZERO)  // the same; the statistic, nonzeros, is told
	RedistributeMomentum = RedistributeMode(flat.REDISTRIBUTE_MOMENTUM) // mean |momentum| over active weights
	RedistributeGradient = RedistributeMode(flat.REDISTRIBUTE_GRADIENT) // mean |gradient| over active weights
	RedistributeCallback = RedistributeMode(flat.REDISTRIBUTE_CALLBACK) // what StatisticFn says
)

// GrowMode says which of the inactive places grow.
type GrowMode int

// The growth modes. The structured ones grow whole kernels.
const (
	GrowNone               = GrowMode(flat.GROW_NONE)                 // none is asked for
	GrowRandom             = GrowMode(flat.GROW_RANDOM)               // uniform
	GrowGradient           = GrowMode(flat.GROW_GRADIENT)             // largest |gradient|
	GrowMomentum           = GrowMode(flat.GROW_MOMENTUM)             // largest |momentum|; needs DenseGradients
	GrowStructGradientMean = GrowMode(flat.GROW_STRUCT_GRADIENT_MEAN) // kernels of largest |mean gradient|
	GrowStructGradientMax  = GrowMode(flat.GROW_STRUCT_GRADIENT_MAX)  // ... |max gradient|
	GrowStructGradientMin  = GrowMode(flat.GROW_STRUCT_GRADIENT_MIN)  // ... |min gradient|
	GrowStructCriterion    = GrowMode(flat.GROW_STRUCT_CRITERION)     // ... |GrowCriterion(gradient)|
	GrowCallback           = GrowMode(flat.GROW_CALLBACK)             // what GrowFn sets in the mask
)

// InitMode says how the first masks are made.
type InitMode int

// The modes of initialisation.
const (
	InitRandom                 = InitMode(flat.INIT_RANDOM)                    // the density in every layer but the first, which leaves, dense
	InitErdosRenyi             = InitMode(flat.INIT_ERDOS_RENYI)               // density ~ (n_out + n_in) / (n_out n_in)
	InitErdosRenyiKernel       = InitMode(flat.INIT_ERDOS_RENYI_KERNEL)        // density ~ sum of dims / product of dims
	InitStructRandom           = InitMode(flat.INIT_STRUCT_RANDOM)             // the same three with whole kernels
	InitStructErdosRenyi       = InitMode(flat.INIT_STRUCT_ERDOS_RENYI)        //
	InitStructErdosRenyiKernel = InitMode(flat.INIT_STRUCT_ERDOS_RENYI_KERNEL) //
	InitResume                 = InitMode(flat.INIT_RESUME)                    // mask = (weight != 0)
	InitLotteryTicket          = InitMode(flat.INIT_LOTTERY_TICKET)            // masks as they are
	InitLotteryTicketDist      = InitMode(flat.INIT_LOTTERY_TICKET_DIST)       // given Counts, positions drawn
)

// Part names what Masking.Apply writes. Parts are added.
type Part int

// The parts of a layer.
const (
	ApplyWeights   = Part(flat.APPLY_WEIGHTS)
	ApplyMomentum  = Part(flat.APPLY_MOMENTUM) // momentum and moments
	ApplyGradients = Part(flat.APPLY_GRADIENTS)
)

// MaskingOptions are the modes of a masking. The zero value prunes by magnitude and grows nothing.
// Functions belong to the modes that name them. An error of one ends the update, which returns it;
// Stop gives ErrCancelled. They may read the masking, but not change it.
type MaskingOptions struct {
	Seed         uint64
	Prune        PruneMode
	Redistribute RedistributeMode
	Grow         GrowMode
	// DenseGradients leaves gradients, momentum and moments alone; else they are zeroed where the
	// mask is.
	DenseGradients bool
	// PruneFn clears bytes of one layer's mask: `requested`, or as many as it likes.
	PruneFn func(layer int, rate float64, requested int64) error
	// PruneCriterion gives the number of one kernel's weights.
	PruneCriterion func(weights []float64) (float64, error)
	// StatisticFn gives the statistic of one layer, finite and >= 0.
	StatisticFn func(layer int) (float64, error)
	// GrowFn sets bytes of one layer's mask, and may set the weights there.
	GrowFn func(layer int, requested int64) error
	// GrowCriterion gives the number of one kernel's gradients.
	GrowCriterion func(gradients []float64) (float64, error)
}

// functions brings the functions to the form in which the library calls them, in the order of
// Masking_create.
func (o *MaskingOptions) functions() ([5]*function, error) {
	var forms [5]flat.Function
	if f := o.PruneFn; f != nil {
		forms[0] = func(n []float64) (float64, error) { return 0, f(int(n[0]), n[1], int64(n[2])) }
	}
	forms[1] = o.PruneCriterion
	if f := o.StatisticFn; f != nil {
		forms[2] = func(n []float64) (float64, error) { return f(int(n[0])) }
	}
	if f := o.GrowFn; f != nil {
		forms[3] = func(n []float64) (float64, error) { return 0, f(int(n[0]), int64(n[1])) }
	}
	forms[4] = o.GrowCriterion
	var functions [5]*function
	for i, form := range forms {
		if form == nil {
			continue
		}
		var err error
		if functions[i], err = newFunction(true, form); err != nil {
			return functions, err
		}
	}
	return functions, nil
}

// Layer is what belongs to a layer besides its weights. The mask, U8, is contiguous in the shape of
// the view. The rest is of any float dtype, laid out as the view says, or Contiguous; what no mode
// reads may be left out. Give Momentum, or both moments of Adam.
type Layer struct {
	Mask     Array
	Gradient Array
	Momentum Array
	AdamM1   Array
	AdamM2   Array
}

// Masking keeps named layers sparse while somebody else trains them: Step after every step of the
// optimiser, Update now and then. It keeps the layers' arrays alive. One call at a time.
type Masking struct {
	handle    *handle
	functions []*function
	weights   []Array
	layers    []Layer
}

// NewMasking makes a masking without layers. It moves the schedule on in every step.
func NewMasking(schedule *Schedule, options MaskingOptions) (*Masking, error) {
	functions, err := options.functions()
	if err != nil {
		return nil, err
	}
	m := &Masking{functions: functions[:]}
	c := &call{}
	number := uintptr(0)
	if schedule != nil {
		number = c.use(schedule.handle)
		m.functions = append(m.functions, schedule.custom)
	}
	m.handle, err = create(c, func() uintptr {
		return flat.Masking_create(number, int64(options.Seed), int(options.Prune),
			int(options.Redistribute), int(options.Grow), bit(options.DenseGradients),
			functions[0].callback(), functions[1].callback(), functions[2].callback(),
			functions[3].callback(), functions[4].callback())
	}, releaseMasking)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close releases the masking.
func (m *Masking) Close() error {
	m.handle.close()
	return nil
}

// Add adds a layer, before initialisation: a name that was never added before, and the view of its
// weights. It returns the layer's id, 0, 1, 2, ...
func (m *Masking) Add(name string, weights *View, layer Layer) (int, error) {
	c := &call{}
	masking, view := c.use(m.handle), c.use(weights.own())
	id := -1
	if err := c.run(func() { id = flat.Masking_add(masking, name, view) }); err != nil {
		return -1, err
	}
	m.weights = append(m.weights, weights.leaf.array)
	m.layers = append(m.layers, layer)
	return id, nil
}

// Remove removes the layer of this name. Its mask is left alone.
func (m *Masking) Remove(name string) error {
	_, err := fact(m.handle, nothing(func(number uintptr) { flat.Masking_remove(number, name) }))
	return err
}

// RemoveMatching removes all layers whose names contain `part`, and returns how many; none is an
// error.
func (m *Masking) RemoveMatching(part string) (int, error) {
	return fact(m.handle, func(number uintptr) int { return flat.Masking_remove_matching(number, part) })
}

// LayerCount returns how many layers were ever added.
func (m *Masking) LayerCount() (int, error) { return fact(m.handle, flat.Masking_layer_count) }

// Find returns the id of the layer of this name, -1 if there is none.
func (m *Masking) Find(name string) (int, error) {
	return fact(m.handle, func(number uintptr) int { return flat.Masking_find(number, name) })
}

// LayerName returns the name of a layer.
func (m *Masking) LayerName(layer int) (string, error) {
	return fact(m.handle, func(number uintptr) string { return flat.Masking_layer_name(number, layer) })
}

// HasLayer tells whether a layer belongs to the masking, and has not left it.
func (m *Masking) HasLayer(layer int) (bool, error) {
	has, err := fact(m.handle, func(number uintptr) int { return flat.Masking_has_layer(number, layer) })
	return has == 1, err
}

// Initialise writes the first masks, and applies them to the weights. density, in [0, 1], is not
// read by InitResume and the lottery tickets. Takes In, Bernoulli, Counts.
func (m *Masking) Initialise(density float64, mode InitMode, given ...Option) error {
	c, o, context := begin(given, "In Bernoulli Counts")
	number := m.enter(c)
	weights, masks := c.buffers(m.weights...), m.masks(c)
	return c.run(func() {
		flat.Masking_initialise(context, number, weights, masks, density, int(mode), o.draw, o.counts)
	})
}

// Densities returns the densities that Initialise would give each layer, without masks.
func (m *Masking) Densities(density float64, mode InitMode) ([]float64, error) {
	c := &call{}
	number := c.use(m.handle)
	densities, err := c.fill(F64, int64(len(m.layers)), func(out []flat.Buffer) {
		flat.Masking_densities(number, density, int(mode), out)
	})
	return densities.Float64s(), err
}

func (m *Masking) enter(c *call) uintptr {
	c.with(m.functions...)
	return c.use(m.handle)
}

// part returns one array of each layer; none if no layer has it.
func (m *Masking) part(c *call, of func(Layer) Array) []flat.Buffer {
	arrays := make([]Array, len(m.layers))
	given := false
	for i, layer := range m.layers {
		arrays[i] = of(layer)
		given = given || arrays[i].data != nil
	}
	if !given {
		return nil
	}
	return c.buffers(arrays...)
}

func (m *Masking) masks(c *call) []flat.Buffer {
	return m.part(c, func(l Layer) Array { return l.Mask })
}

// buffers are those of all layers.
type buffers struct{ weights, masks, gradients, momenta, m1, m2 []flat.Buffer }

func (m *Masking) buffers(c *call) buffers {
	return buffers{
		weights:   c.buffers(m.weights...),
		masks:     m.masks(c),
		gradients: m.part(c, func(l Layer) Array { return l.Gradient }),
		momenta:   m.part(c, func(l Layer) Array { return l.Momentum }),
		m1:        m.part(c, func(l Layer) Array { return l.AdamM1 }),
		m2:        m.part(c, func(l Layer) Array { return l.AdamM2 }),
	}
}

// Apply zeroes what the masks forbid, in the parts that are named. Takes In.
func (m *Masking) Apply(what Part, given ...Option) error {
	c, _, context := begin(given, "In")
	number, b := m.enter(c), m.buffers(c)
	return c.run(func() {
		flat.Masking_apply(context, number, b.weights, b.masks, b.gradients, b.momenta, b.m1, b.m2, int(what))
	})
}

// Step follows a step of the optimiser: it applies the masks, and moves the schedule on. Takes In.
func (m *Masking) Step(given ...Option) error {
	c, _, context := begin(given, "In")
	number, b := m.enter(c), m.buffers(c)
	return c.run(func() {
		flat.Masking_step(context, number, b.weights, b.masks, b.gradients, b.momenta, b.m1, b.m2)
	})
}

// UpdateReport is what an update did, all layers together. Counts are elements.
type UpdateReport struct {
	Rate             float64 // of the schedule
	RequestedRemoved int64
	Removed          int64
	RequestedGrown   int64
	Grown            int64
	Nonzeros         int64 // now
	Residual         int64 // baseline - nonzeros
}

// Update prunes and grows. Takes In.
func (m *Masking) Update(given ...Option) (UpdateReport, error) {
	c, _, context := begin(given, "In")
	number, b := m.enter(c), m.buffers(c)
	var n []float64
	err := c.run(func() {
		n = flat.Masking_update(context, number, b.weights, b.masks, b.gradients, b.momenta, b.m1, b.m2)
	})
	if err != nil {
		return UpdateReport{}, err
	}
	return UpdateReport{n[0], int64(n[1]), int64(n[2]), int64(n[3]), int64(n[4]), int64(n[5]), int64(n[6])}, nil
}

// LayerStats are those of the last initialisation, update or restoring. Counts are elements.
type LayerStats struct {
	Numel            int64
	Nonzeros         int64
	Zeros            int64
	Density          float64
	RequestedDensity float64 // at initialisation
	Statistic        float64 // normalised, at the last update
	Rate             float64 // at the last update, as are the rest
	RequestedRemoved int64
	Removed          int64
	RequestedGrown   int64
	Grown            int64
}

// allLayers is the layer of flat.Masking_stats that means their sum.
const allLayers = -1

// Stats returns sums over the layers that belong; densities and rate are means, weighted by numel.
func (m *Masking) Stats() (LayerStats, error) { return m.stats(allLayers) }

// LayerStats returns the statistics of one layer.
func (m *Masking) LayerStats(layer int) (LayerStats, error) {
	if layer < 0 {
		return LayerStats{}, &Error{ErrOutOfBounds, "layer: got a negative one, expected an id"}
	}
	return m.stats(layer)
}

func (m *Masking) stats(layer int) (LayerStats, error) {
	n, err := fact(m.handle, func(number uintptr) []float64 { return flat.Masking_stats(number, layer) })
	if err != nil {
		return LayerStats{}, err
	}
	return LayerStats{int64(n[0]), int64(n[1]), int64(n[2]), n[3], n[4], n[5], n[6], int64(n[7]),
		int64(n[8]), int64(n[9]), int64(n[10])}, nil
}

// Baseline returns the nonzeros that growth aims for: those of initialisation.
func (m *Masking) Baseline() (int64, error) { return fact(m.handle, flat.Masking_baseline) }

// AdjustedGrowth returns what the next update adds to the places that it hands out.
func (m *Masking) AdjustedGrowth() (float64, error) {
	return fact(m.handle, flat.Masking_adjusted_growth)
}

// Save returns the whole state, the same bytes on every machine. Masks and weights are yours to
// save.
func (m *Masking) Save() ([]byte, error) {
	size, err := fact(m.handle, flat.Masking_save_size)
	if err != nil {
		return nil, err
	}
	c := &call{}
	number := c.use(m.handle)
	blob, err := c.fill(U8, size, func(out []flat.Buffer) { flat.Masking_save(number, out) })
	return blob.Bytes(), err
}

// Restore takes up a saved state, so that training goes on bit for bit, given the same arrays. The
// masking must have the same modes, kind of schedule and layers. A blob that does not fit is
// refused, and nothing changed.
func (m *Masking) Restore(blob []byte) error {
	c := &call{}
	number, source := c.use(m.handle), c.buffers(Of(blob))
	return c.run(func() { flat.Masking_restore(number, source) })
}
