// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

var (
	pruneModes = map[string]sparsekit.PruneMode{
		"magnitude": sparsekit.PruneMagnitude, "global_magnitude": sparsekit.PruneGlobalMagnitude,
		"struct_magnitude_mean": sparsekit.PruneStructMagnitudeMean,
		"struct_magnitude_max":  sparsekit.PruneStructMagnitudeMax,
		"struct_magnitude_min":  sparsekit.PruneStructMagnitudeMin,
		"struct_criterion":      sparsekit.PruneStructCriterion, "callback": sparsekit.PruneCallback}
	redistributeModes = map[string]sparsekit.RedistributeMode{
		"none": sparsekit.RedistributeNone, "nonzero": sparsekit.RedistributeNonzero,
		"momentum": sparsekit.RedistributeMomentum, "gradient": sparsekit.RedistributeGradient,
		"callback": sparsekit.RedistributeCallback}
	growModes = map[string]sparsekit.GrowMode{
		"none": sparsekit.GrowNone, "random": sparsekit.GrowRandom, "gradient": sparsekit.GrowGradient,
		"momentum":             sparsekit.GrowMomentum,
		"struct_gradient_mean": sparsekit.GrowStructGradientMean,
		"struct_gradient_max":  sparsekit.GrowStructGradientMax,
		"struct_gradient_min":  sparsekit.GrowStructGradientMin,
		"struct_criterion":     sparsekit.GrowStructCriterion, "callback": sparsekit.GrowCallback}
	initModes = map[string]sparsekit.InitMode{
		"random": sparsekit.InitRandom, "erdos_renyi": sparsekit.InitErdosRenyi,
		"erdos_renyi_kernel":        sparsekit.InitErdosRenyiKernel,
		"struct_random":             sparsekit.InitStructRandom,
		"struct_erdos_renyi":        sparsekit.InitStructErdosRenyi,
		"struct_erdos_renyi_kernel": sparsekit.InitStructErdosRenyiKernel,
		"resume":                    sparsekit.InitResume, "lottery_ticket": sparsekit.InitLotteryTicket,
		"lottery_ticket_dist": sparsekit.InitLotteryTicketDist}
	parts = map[string]sparsekit.Part{"weights": sparsekit.ApplyWeights,
		"momentum": sparsekit.ApplyMomentum, "gradients": sparsekit.ApplyGradients}
)

func init() {
	register(map[string]command{
		"schedule": func(r *run, a *arguments) (string, error) {
			schedule, err := newSchedule(a)
			if err != nil {
				return "", err
			}
			return r.keep(a.at(0), schedule), nil
		},
		"schedule_step": func(r *run, a *arguments) (string, error) {
			if a.has("t") {
				return ok(r.schedule(a).StepTo(a.integer("t", 0)))
			}
			return ok(r.schedule(a).Step())
		},
		"position": func(r *run, a *arguments) (string, error) { return oneInt(r.schedule(a).Position()) },
		"rate": func(r *run, a *arguments) (string, error) {
			if a.has("current") {
				return oneNumber(r.schedule(a).RateFrom(a.number("current", 0)))
			}
			return oneNumber(r.schedule(a).Rate())
		},
		"cumulative_sparsity": func(r *run, a *arguments) (string, error) {
			return oneNumber(r.schedule(a).CumulativeSparsity(a.integer("t", 0)))
		},
		"masking": func(r *run, a *arguments) (string, error) {
			layers := &[]sparsekit.Layer{}
			schedule := named[*sparsekit.Schedule](r, a, a.at(1))
			masking, err := sparsekit.NewMasking(schedule, maskingOptions(a, layers))
			if err != nil {
				return "", err
			}
			r.layers[masking] = layers
			return r.keep(a.at(0), masking), nil
		},
		"add": func(r *run, a *arguments) (string, error) {
			masking := r.masking(a)
			layer := sparsekit.Layer{Mask: r.layerArray(a, "mask"), Gradient: r.layerArray(a, "gradient"),
				Momentum: r.layerArray(a, "momentum"), AdamM1: r.layerArray(a, "adam_m1"),
				AdamM2: r.layerArray(a, "adam_m2")}
			id, err := masking.Add(a.at(1), named[*sparsekit.View](r, a, a.at(2)), layer)
			if err == nil {
				*r.layers[masking] = append(*r.layers[masking], layer)
			}
			return oneInt(id, err)
		},
		"remove": func(r *run, a *arguments) (string, error) { return ok(r.masking(a).Remove(a.at(1))) },
		"remove_matching": func(r *run, a *arguments) (string, error) {
			return oneInt(r.masking(a).RemoveMatching(a.at(1)))
		},
		"has_layer": func(r *run, a *arguments) (string, error) {
			has, err := r.masking(a).HasLayer(int(a.toInt(a.at(1))))
			return oneInt(map[bool]int{true: 1}[has], err)
		},
		"layer_name": func(r *run, a *arguments) (string, error) {
			return text(r.masking(a).LayerName(int(a.toInt(a.at(1)))))
		},
		"find":        func(r *run, a *arguments) (string, error) { return oneInt(r.masking(a).Find(a.at(1))) },
		"layer_count": func(r *run, a *arguments) (string, error) { return oneInt(r.masking(a).LayerCount()) },
		"initialise": func(r *run, a *arguments) (string, error) {
			options := r.options(a)
			if a.has("counts") {
				options = append(options, sparsekit.Counts(a.integers("counts")...))
			}
			return ok(r.masking(a).Initialise(a.number("density", 0), initModes[a.keyed["mode"]], options...))
		},
		"densities": func(r *run, a *arguments) (string, error) {
			return numbers(r.masking(a).Densities(a.number("density", 0), initModes[a.keyed["mode"]]))
		},
		"apply": func(r *run, a *arguments) (string, error) {
			what := sparsekit.Part(0)
			for _, part := range a.words("what") {
				what += parts[part]
			}
			return ok(r.masking(a).Apply(what, r.options(a)...))
		},
		"step": func(r *run, a *arguments) (string, error) { return ok(r.masking(a).Step(r.options(a)...)) },
		"update": func(r *run, a *arguments) (string, error) {
			u, err := r.masking(a).Update(r.options(a)...)
			return numbers([]float64{u.Rate, float64(u.RequestedRemoved), float64(u.Removed),
				float64(u.RequestedGrown), float64(u.Grown), float64(u.Nonzeros), float64(u.Residual)}, err)
		},
		"stats": func(r *run, a *arguments) (string, error) {
			if a.has("layer") {
				return stats(r.masking(a).LayerStats(int(a.integer("layer", 0))))
			}
			return stats(r.masking(a).Stats())
		},
		"baseline":        func(r *run, a *arguments) (string, error) { return oneInt(r.masking(a).Baseline()) },
		"adjusted_growth": func(r *run, a *arguments) (string, error) { return oneNumber(r.masking(a).AdjustedGrowth()) },
		"state_save": func(r *run, a *arguments) (string, error) {
			blob, err := r.masking(a).Save()
			if err != nil {
				return "", err
			}
			r.arrays[a.at(1)] = sparsekit.Of(blob)
			return "ok", nil
		},
		"state_restore": func(r *run, a *arguments) (string, error) {
			return ok(r.masking(a).Restore(r.array(a, a.at(1)).Bytes()))
		},
	})
}

func newSchedule(a *arguments) (*sparsekit.Schedule, error) {
	switch a.at(1) {
	case "cosine":
		return sparsekit.NewCosineSchedule(a.number("prune_rate", 0), a.integer("t_max", 0),
			a.number("eta_min", 0), a.integer("last_epoch", -1))
	case "linear":
		return sparsekit.NewLinearSchedule(a.number("prune_rate", 0), a.integer("t_max", 0))
	case "magnitude":
		return sparsekit.NewMagnitudeSchedule(a.number("initial", 0), a.number("final", 0),
			a.integer("t_max", 0), a.integer("t_start", 0), a.integer("interval", 0))
	}
	throws := a.keyed["fn"] == "throw"
	return sparsekit.NewCustomSchedule(func(t int64) (float64, error) {
		if throws {
			return 0, errCallback
		}
		return 1 / (2 + float64(t)), nil
	})
}

func maskingOptions(a *arguments, layers *[]sparsekit.Layer) sparsekit.MaskingOptions {
	options := sparsekit.MaskingOptions{Seed: uint64(a.integer("seed", 0)),
		Prune:          pruneModes[a.keyed["prune"]],
		Redistribute:   redistributeModes[a.keyed["redistribute"]],
		Grow:           growModes[a.keyed["grow"]],
		DenseGradients: a.integer("dense_gradients", 0) == 1}
	ends := map[string]error{"throw": errCallback}[a.keyed["fn"]]
	criterion := func(elements []float64) (float64, error) {
		if ends != nil {
			return 0, ends
		}
		return sum(elements)
	}
	if options.Prune == sparsekit.PruneStructCriterion {
		options.PruneCriterion = criterion
	}
	if options.Grow == sparsekit.GrowStructCriterion {
		options.GrowCriterion = criterion
	}
	if options.Prune == sparsekit.PruneCallback {
		options.PruneFn = func(layer int, rate float64, requested int64) error {
			flip((*layers)[layer].Mask, 1, requested)
			return ends
		}
	}
	if options.Grow == sparsekit.GrowCallback {
		options.GrowFn = func(layer int, requested int64) error {
			flip((*layers)[layer].Mask, 0, requested)
			return ends
		}
	}
	if options.Redistribute == sparsekit.RedistributeCallback {
		options.StatisticFn = func(layer int) (float64, error) { return 1 + float64(layer), ends }
	}
	return options
}

// flip changes the first `count` bytes of a mask that have a value.
func flip(mask sparsekit.Array, value byte, count int64) {
	bytes := mask.Bytes()
	for i := 0; i < len(bytes) && count > 0; i++ {
		if bytes[i] == value {
			bytes[i] = 1 - value
			count--
		}
	}
}

func stats(s sparsekit.LayerStats, err error) (string, error) {
	return numbers([]float64{float64(s.Numel), float64(s.Nonzeros), float64(s.Zeros), s.Density,
		s.RequestedDensity, s.Statistic, s.Rate, float64(s.RequestedRemoved), float64(s.Removed),
		float64(s.RequestedGrown), float64(s.Grown)}, err)
}
