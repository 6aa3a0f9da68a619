// SPDX-License-Identifier: Apache-2.0

// Command conformance runs the cases of bindings/conformance: conformance CASES RESULTS.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsekit/sparsekit/bindings/go/sparsekit"
)

// errCallback is the driver's own error, which its functions return.
var errCallback = errors.New("the driver's own")

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: conformance CASES RESULTS")
	}
	if err := runAll(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func runAll(cases, results string) error {
	file, err := os.Open(filepath.Join(cases, "cases.tsv"))
	if err != nil {
		return err
	}
	defer file.Close()
	out, err := os.Create(filepath.Join(results, "results.tsv"))
	if err != nil {
		return err
	}
	defer out.Close()
	current := newRun("", cases, results)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if fields[0] != current.name {
			current.closeAll()
			current = newRun(fields[0], cases, results)
		}
		current.step++
		result := current.execute(newArguments(fields[1], fields[2:]))
		fmt.Fprintf(out, "%s\t%d\t%s\n", current.name, current.step, result)
	}
	current.closeAll()
	return lines.Err()
}

// closer is any object of the library.
type closer interface{ Close() error }

// run is one case: the names that it gave.
type run struct {
	name, cases, results string
	step                 int
	arrays               map[string]sparsekit.Array
	objects              map[string]closer
	order                []closer
	layers               map[*sparsekit.Masking]*[]sparsekit.Layer
}

func newRun(name, cases, results string) *run {
	return &run{name: name, cases: cases, results: results, arrays: map[string]sparsekit.Array{},
		objects: map[string]closer{}, layers: map[*sparsekit.Masking]*[]sparsekit.Layer{}}
}

func (r *run) closeAll() {
	for _, object := range r.order {
		object.Close()
	}
}

// keep gives an object its name.
func (r *run) keep(name string, object closer) string {
	r.objects[name] = object
	r.order = append(r.order, object)
	return "ok"
}

// execute returns the result of a step.
func (r *run) execute(a *arguments) (result string) {
	command, known := commands[a.command]
	if !known {
		return "text unknown command " + a.command
	}
	result, err := command(r, a)
	var failure *sparsekit.Error
	switch {
	case err == nil && a.err == nil:
		return result
	case errors.Is(err, errCallback):
		return "error callback"
	case errors.As(err, &failure):
		message := strings.NewReplacer("\t", " ", "\n", " ").Replace(failure.Message)
		return "error " + failure.Status.Error() + " " + message
	case err == nil:
		err = a.err
	}
	return "text the driver failed: " + err.Error()
}

// command makes the call, and returns its result.
type command func(r *run, a *arguments) (string, error)

var commands = map[string]command{}

func register(more map[string]command) {
	for name, c := range more {
		commands[name] = c
	}
}
