//go:build mutants

package mutants_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/sim/mutants"
)

var (
	only    = flag.String("mutants.only", "", "run those whose name or fault matches")
	jsonTo  = flag.String("mutants.json", "", "write the results here")
	from    = flag.String("mutants.from", "", "results of an earlier run, for those that are not run now")
	pageTo  = flag.String("mutants.page", "", "write the page here, if all are caught")
	limit   = flag.Duration("mutants.limit", 2*time.Minute, "how long the tests of one may take; of one that hangs, half of it")
	side    = flag.Int("mutants.side", 2, "how many are run side by side")
	control = flag.Bool("mutants.control", true, "run the same tests without the mutants first")
)

// TestMutants runs each mutant against the tests that must catch it.
func TestMutants(t *testing.T) {
	chosen := choose(t)
	begun := time.Now()
	if *control {
		t.Run("control", func(t *testing.T) { controls(t, chosen) })
		if t.Failed() {
			t.Fatal("the tests fail without a mutant: what they catch would say nothing")
		}
	}
	t.Logf("control after %s", time.Since(begun).Round(time.Second))
	results := runAll(t, chosen)
	for _, r := range results {
		if !r.Caught {
			t.Errorf("%s (%s): %s", r.Name, r.Text, r.Verdict)
		}
	}
	t.Logf("%d mutants in %s", len(results), time.Since(begun).Round(time.Second))
	results = withEarlier(t, results)
	if *jsonTo != "" {
		data, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		write(t, *jsonTo, string(data)+"\n")
	}
	whole := len(results) == len(mutants.All()) && !slices.ContainsFunc(results, func(r mutants.Result) bool { return !r.Caught })
	if *pageTo != "" && whole {
		write(t, *pageTo, mutants.Page(results))
	}
}

// withEarlier adds the results of an earlier run, in the order of the list.
func withEarlier(t *testing.T, results []mutants.Result) []mutants.Result {
	t.Helper()
	if *from == "" {
		return results
	}
	var earlier []mutants.Result
	data, err := os.ReadFile(*from)
	if err == nil {
		err = json.Unmarshal(data, &earlier)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []mutants.Result
	for _, m := range mutants.All() {
		for _, of := range [][]mutants.Result{results, earlier} {
			if i := slices.IndexFunc(of, func(r mutants.Result) bool { return r.Name == m.Name }); i >= 0 {
				all = append(all, of[i])
				break
			}
		}
	}
	return all
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a page for all to read
		t.Error(err)
	}
}

func choose(t *testing.T) []mutants.Mutant {
	t.Helper()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	chosen := slices.DeleteFunc(mutants.All(), func(m mutants.Mutant) bool {
		return !wanted.MatchString(m.Name) && !wanted.MatchString(m.Fault)
	})
	if len(chosen) == 0 {
		t.Fatalf("no mutant matches %q", *only)
	}
	return chosen
}

// controls runs the tests of each package once without a mutant. All must pass, and each name must match a
// test.
func controls(t *testing.T, chosen []mutants.Mutant) {
	names := map[string][]string{}
	for _, m := range chosen {
		for _, name := range m.Tests {
			if !slices.Contains(names[m.Package], name) {
				names[m.Package] = append(names[m.Package], name)
			}
		}
	}
	eachOf(names, func(pkg string, tests []string) {
		run, err := mutants.Try(root, pkg, strings.Join(tests, "|"), "", 2*(*limit))
		switch {
		case err != nil:
			t.Error(err)
		case !run.Built:
			t.Errorf("%s does not compile:\n%s", pkg, run.Raw)
		case len(run.Failed)+len(run.Running) > 0:
			t.Errorf("%s: %q fail, %q do not end\n%s", pkg, run.Failed, run.Running, run.Output[append(run.Failed, run.Running...)[0]])
		}
		for _, name := range tests {
			if !slices.ContainsFunc(run.Passed, func(test string) bool { return chooses(name, test) }) {
				t.Errorf("%s: %s names no test that passes", pkg, name)
			}
		}
	})
}

// chooses reports whether a pattern such as TestA/b selects a test.
func chooses(pattern, test string) bool {
	parts, elements := strings.Split(pattern, "/"), strings.Split(test, "/")
	if len(elements) < len(parts) {
		return false
	}
	for i, p := range parts {
		if ok, err := regexp.MatchString(p, elements[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// eachOf calls f for each package, some in parallel.
func eachOf(names map[string][]string, f func(pkg string, tests []string)) {
	places := make(chan struct{}, *side)
	var group sync.WaitGroup
	for pkg, tests := range names {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			f(pkg, tests)
		})
	}
	group.Wait()
}

func runAll(t *testing.T, chosen []mutants.Mutant) []mutants.Result {
	t.Helper()
	dir := t.TempDir()
	results := make([]mutants.Result, len(chosen))
	places := make(chan struct{}, *side)
	var group sync.WaitGroup
	for i := range chosen {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			within := *limit
			if chosen[i].Hangs {
				within /= 2
			}
			r := chosen[i].Kill(root, dir, within)
			results[i] = r
			fmt.Printf("%-34s %s\n", r.Name, word(r)) //nolint:forbidigo // progress
		})
	}
	group.Wait()
	return results
}

func word(r mutants.Result) string {
	if !r.Caught {
		return r.Verdict
	}
	return fmt.Sprintf("caught by %s in %.1f s (%.0f s with the build): %s", r.By, r.Seconds, r.Whole, r.Says)
}
