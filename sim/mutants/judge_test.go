//go:build mutants

package mutants_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/sim/mutants"
)

// TestRunnerReportsUncaughtMutants: a bug that no test detects, one that does not compile, one whose tests
// only hang and one whose snippet is gone do not count as caught.
func TestRunnerReportsUncaughtMutants(t *testing.T) {
	const file, check = "internal/agentaddr/agentaddr.go", "if err := Never(ip); err != nil {"
	for verdict, m := range map[string]mutants.Mutant{
		"NOT CAUGHT":                      {Edits: []mutants.Edit{{Old: check, New: "if err := Never(ip); nil != err {"}}},
		"does not compile":                {Edits: []mutants.Edit{{Old: check, New: "if err := Nowhere(ip); err != nil {"}}},
		"NOT CAUGHT: the tests only hang": {Edits: []mutants.Edit{{Old: check, New: "select {}\n\tif err := Never(ip); err != nil {"}}},
		"stands 0 times":                  {Edits: []mutants.Edit{{Old: "no such text", New: "any"}}},
	} {
		m.Name, m.File, m.Package, m.Tests = strings.ReplaceAll(verdict, " ", "-"), file, "internal/agentaddr", []string{"TestCheck"}
		within := *limit
		if strings.Contains(verdict, "hang") {
			within = 5 * time.Second
		}
		if r := m.Kill(root, t.TempDir(), within); r.Caught || !strings.Contains(r.Verdict, verdict) || strings.Contains(r.Verdict, "only hang") != strings.Contains(verdict, "only hang") {
			t.Errorf("%s: caught %v by %s: %s", verdict, r.Caught, r.By, r.Verdict)
		}
	}
}
