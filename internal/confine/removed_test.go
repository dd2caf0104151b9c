//go:build linux

package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

// A service manager may remove empty groups. The next run gets new ones, with
// its limits.
func TestGroupsThatSomebodyRemoved(t *testing.T) {
	h := open(t, "groups")
	limited := "" // what the run prints if its limits apply
	for _, l := range h.Report().Limits {
		if l.Name == "processes" && l.By == "cgroup2" {
			limited = "fork"
		}
	}
	hello := func(when string) {
		t.Helper()
		r := start(t, h, confine.Limits{Processes: 5, Memory: 64 << 20}, confine.Sandbox{}, "echo hello; i=0; while [ $i -lt 20 ]; do sleep 1 & i=$((i+1)); done")
		r.finish()
		if out := r.out.String(); !strings.Contains(out, "hello\n") || !strings.Contains(out, limited) {
			t.Errorf("%s: %s", when, out)
		}
		r.done()
	}
	hello("at first")
	for _, dir := range groups(name(t)) {
		boxes, _ := filepath.Glob(filepath.Join(dir, "box-*"))
		for _, b := range boxes {
			_ = os.Remove(b) // the one with our thread stays
		}
	}
	hello("without the boxes")
	hello("once more")
	for _, dir := range groups(name(t)) {
		boxes, _ := filepath.Glob(filepath.Join(dir, "box-*"))
		for _, b := range append(boxes, dir) {
			_ = os.Remove(b)
		}
	}
	hello("without the group of all boxes")
	hello("once more")
	// The new groups are ours: a starting neighbour leaves them alone.
	before := groups(name(t))
	n, err := confine.Open(confine.Options{Name: name(t) + "-neighbour"})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if after := groups(name(t)); len(after) != len(before) {
		t.Errorf("of %v, these are left: %v", before, after)
	}
}
