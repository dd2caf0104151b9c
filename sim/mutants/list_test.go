package mutants_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/signalbox-ai/signalbox/sim/mutants"
)

const root = "../.."

// TestEachSnippetStandsOnceInItsFile: an outdated list catches nothing.
func TestEachSnippetStandsOnceInItsFile(t *testing.T) {
	for _, m := range mutants.All() {
		if _, err := m.Apply(root); err != nil {
			t.Error(err)
		}
		if len(m.Edits) == 0 || len(m.Tests) == 0 || m.Text == "" {
			t.Errorf("mutant %s lacks its edit, its tests or what it does wrong", m.Name)
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m.Package))); err != nil {
			t.Errorf("mutant %s: %v", m.Name, err)
		}
	}
}

// TestEachFaultHasItsMutant compares the two lists in both directions.
func TestEachFaultHasItsMutant(t *testing.T) {
	known, names := map[string]int{}, map[string]bool{}
	for _, f := range mutants.Faults {
		if _, twice := known[f.ID]; twice {
			t.Errorf("fault %s is there twice", f.ID)
		}
		known[f.ID] = 0
	}
	for _, m := range mutants.All() {
		if names[m.Name] {
			t.Errorf("mutant %s is there twice", m.Name)
		}
		names[m.Name] = true
		if _, ok := known[m.Fault]; !ok {
			t.Errorf("mutant %s stands for %q, which is no fault of the list", m.Name, m.Fault)
		}
		known[m.Fault]++
	}
	for id, n := range known {
		if n == 0 {
			t.Errorf("fault %s has no mutant", id)
		}
	}
	if len(names) < 30 {
		t.Errorf("there are %d mutants", len(names))
	}
}

// TestThePageHasEachMutant compares the list with docs/development/mutants.md, which is
// generated from a run.
func TestThePageHasEachMutant(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "development", "mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	var onPage, listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		onPage = append(onPage, row[1])
	}
	for _, m := range mutants.All() {
		listed = append(listed, m.Name)
	}
	if !slices.Equal(onPage, listed) {
		t.Errorf("docs/development/mutants.md has other mutants than the list: make mutants regenerates it\npage %q\nlist %q", onPage, listed)
	}
}
