package dashboard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestModules runs the tests of the modules that need no browser.
func TestModules(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("node is not here, which runs the modules of the pages: %v", err)
	}
	files, err := filepath.Glob("testdata/*.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	out, err := exec.CommandContext(t.Context(), node, append([]string{"--test"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
