package storetest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// TestNoStoresFails is run by the test below, in a separate process: there is no store.
func TestNoStoresFails(t *testing.T) {
	how := os.Getenv("SIGNALBOX_TEST_TALLY")
	if how == "" {
		t.Skip("it fails, and is run by TestSuiteWithoutStoresFails alone")
	}
	Run(t, func(t *testing.T) store.Store {
		if how == "none" || !strings.Contains(t.Name(), "/submit/") {
			t.Skip("there is no server")
		}
		return memory.New(memory.Options{})
	})
}

func TestSuiteWithoutStoresFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"none", "some"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestNoStoresFails$")
		cmd.Env = append(os.Environ(), "SIGNALBOX_TEST_TALLY="+how)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "cases ran") {
			t.Errorf("a suite without %s of its cases passes (%v):\n%s", how, err, out)
		}
	}
}
