// SPDX-License-Identifier: Apache-2.0

// Command prune prunes a 64 x 128 matrix to 2:4 along its rows, in place.
package main

import (
	"fmt"
	"log"

	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

func main() {
	weights := make([]float32, 64*128)
	for i := range weights {
		weights[i] = float32(i*37%101 + 1)
	}
	view, err := sparsekit.NewView(sparsekit.Of(weights), 64, 128)
	if err != nil {
		log.Fatal(err)
	}
	defer view.Close()
	report, err := view.PruneNM(1, 2, 4)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("kept %d of %d\n", report.Achieved, report.Total) // kept 4096 of 8192
}
