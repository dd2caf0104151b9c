package signalbox_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	startsGoroutine = regexp.MustCompile(`(?m)^\s*go (func\b|[\w.]+\()|\.Go\(|\bAfterFunc\(`)
	checksLeaks     = regexp.MustCompile(`goleak\.(VerifyTestMain|VerifyNone|Find)\(`)
)

// helpers are packages for tests only. The goroutines that they start are checked
// in the tests that use them.
var helpers = map[string]bool{
	"internal/agentaddr/addrtest": true, "internal/gateway/providertest": true, "internal/store/storetest": true,
	"internal/testserver": true, "internal/httpapi/apitest": true, "internal/toolqueuetest": true, "internal/execution/push/agenttest": true, "internal/llm/llmtest": true,
}

// TestPackagesWithGoroutinesCheckForLeaks asserts that a package whose code starts
// goroutines checks for leaks at the end of its tests.
func TestPackagesWithGoroutinesCheckForLeaks(t *testing.T) {
	starts, checks := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || path == "bench" || path == "e2e" || path == "scripts" || path == filepath.Join("sim", "mutants") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		pkg := filepath.Dir(path)
		switch {
		case strings.HasSuffix(path, "_test.go"):
			checks[pkg] = checks[pkg] || checksLeaks.Match(text)
		case startsGoroutine.Match(text):
			starts[pkg] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, file := range starts {
		if !checks[pkg] && !helpers[pkg] {
			t.Errorf("%s starts goroutines (%s): end its tests with goleak.VerifyTestMain", pkg, file)
		}
	}
	if len(starts) < 20 {
		t.Errorf("only %d packages start goroutines: this test does not parse the files as they are written", len(starts))
	}
}
