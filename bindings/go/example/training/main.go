// SPDX-License-Identifier: Apache-2.0

// Command training finds a sparse linear model by dynamic sparse training. Of 64 inputs only 6
// matter; the masking holds 16 weights, drawn at random first, and in each update moves those of
// smallest magnitude to where the gradient is large (RigL).
package main

import (
	"fmt"
	"log"
	"math/rand"

	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

const (
	inputs = 64
	steps  = 400
)

// truth is the model to be found: inputs 5, 15, 25, ...
func truth(input int) float32 {
	if input%10 == 5 {
		return 1 + float32(input)/inputs
	}
	return 0
}

// descend adds the gradient of one example's squared error, and makes a step of SGD.
func descend(weights, gradients []float32, random *rand.Rand) {
	example := make([]float32, inputs)
	failure := float32(0)
	for i := range example {
		example[i] = float32(random.NormFloat64())
		failure += (weights[i] - truth(i)) * example[i]
	}
	for i := range weights {
		// Gradients are averaged, so that an update sees more than one example.
		gradients[i] = 0.9*gradients[i] + 0.1*failure*example[i]
		weights[i] -= 0.01 * failure * example[i]
	}
}

func train() (found int, nonzeros int64, err error) {
	weights, gradients := make([]float32, inputs), make([]float32, inputs)
	mask := make([]uint8, inputs)
	view, err := sparsekit.NewView(sparsekit.Of(weights), 1, inputs)
	if err != nil {
		return 0, 0, err
	}
	defer view.Close()

	// A schedule of our own: half of the weights move at first, none after three quarters.
	schedule, err := sparsekit.NewCustomSchedule(func(t int64) (float64, error) {
		if t > steps*3/4 {
			return 0, nil
		}
		return 0.5 * (1 - float64(t)/(steps*3/4)), nil
	})
	if err != nil {
		return 0, 0, err
	}
	defer schedule.Close()

	masking, err := sparsekit.NewMasking(schedule, sparsekit.MaskingOptions{
		Seed: 1, Grow: sparsekit.GrowGradient, DenseGradients: true})
	if err != nil {
		return 0, 0, err
	}
	defer masking.Close()
	layer := sparsekit.Layer{Mask: sparsekit.Of(mask), Gradient: sparsekit.Of(gradients)}
	if _, err = masking.Add("linear", view, layer); err != nil {
		return 0, 0, err
	}
	if err = masking.Initialise(0.25, sparsekit.InitErdosRenyi); err != nil {
		return 0, 0, err
	}

	random := rand.New(rand.NewSource(1))
	for step := 1; step <= steps; step++ {
		descend(weights, gradients, random)
		if step%10 == 0 {
			if _, err = masking.Update(); err != nil {
				return 0, 0, err
			}
		}
		if err = masking.Step(); err != nil {
			return 0, 0, err
		}
	}
	for i := range mask {
		if mask[i] == 1 && truth(i) != 0 {
			found++
		}
	}
	stats, err := masking.Stats()
	return found, stats.Nonzeros, err
}

func main() {
	found, nonzeros, err := train()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of 64 weights, %d of the 6 that matter among them\n", nonzeros, found)
	if nonzeros != 16 || found != 6 {
		log.Fatal("expected 16 of 64 weights, and all 6")
	}
}
