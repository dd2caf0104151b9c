package dashboard_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestModules runs the tests of modules that need no browser.
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // stops a module that waits for ever
	defer cancel()
	out, err := exec.CommandContext(ctx, node, append([]string{"--test", "--test-force-exit"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
