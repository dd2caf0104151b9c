package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Fault is something that went wrong in another system.
type Fault struct {
	ID   string // the system and its number there, or a word
	Text string
}

// Edit is a snippet that occurs in a file exactly once, and its replacement.
type Edit struct{ Old, New string }

// Mutant is a deliberate bug.
type Mutant struct {
	Name  string
	Fault string // Fault.ID
	Text  string // what it does wrong
	File  string // relative to the root of the module
	Edits []Edit

	// Package has the tests that must catch it, Tests names them as for -run. One of them is enough.
	Package string
	Tests   []string
	// Hangs: a test that never ends counts as failed, since the bug is an endless wait.
	Hangs bool
}

// Apply returns the text of the mutant's file with the bug.
func (m *Mutant) Apply(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.File)))
	if err != nil {
		return "", err
	}
	text := string(data)
	for _, e := range m.Edits {
		switch n := strings.Count(text, e.Old); {
		case n != 1:
			return "", fmt.Errorf("mutant %s: its snippet stands %d times in %s, not once: the code has changed, so change the mutant\n%s", m.Name, n, m.File, e.Old)
		case e.Old == e.New:
			return "", fmt.Errorf("mutant %s changes nothing in %s", m.Name, m.File)
		}
		text = strings.Replace(text, e.Old, e.New, 1)
	}
	return text, nil
}

// Pattern is the -run pattern of its tests.
func (m *Mutant) Pattern() string { return strings.Join(m.Tests, "|") }

// All lists the mutants in the order of the faults.
func All() []Mutant {
	var all []Mutant
	for _, list := range [][]Mutant{queueMutants, lostMutants, keptMutants, executionMutants, accessMutants, toolQueueMutants, stepMutants, commandMutants, askedMutants, peerMutants} {
		all = append(all, list...)
	}
	return all
}
