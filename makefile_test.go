package signalbox_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests that make test excludes from the run with the race detector (NORACE)
// run without it: test-alone lists their packages, and no others.
func TestTestsWithoutRaceDetectorRunInTestAlone(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	find := func(expr string) string {
		m := regexp.MustCompile(`(?m)` + expr).FindSubmatch(text)
		if m == nil {
			t.Fatalf("the Makefile has no %s", expr)
		}
		return string(m[1])
	}
	names := regexp.MustCompile(strings.ReplaceAll(find(`^NORACE += (.*)$`), "$$", "$"))
	alone := strings.Fields(find(`^\t\$\(GO\) test \$\(FLAGS\) -run '\$\(NORACE\)' (.*)$`))
	tests := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	found, idle := 0, slices.Clone(alone)
	err = filepath.WalkDir("internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range tests.FindAllSubmatch(source, -1) {
			if name := string(m[1]); names.MatchString(name) {
				found++
				dir := "./" + filepath.ToSlash(filepath.Dir(path))
				if !slices.Contains(alone, dir) {
					t.Errorf("%s of %s runs neither with the race detector nor in test-alone", name, dir)
				}
				idle = slices.DeleteFunc(idle, func(p string) bool { return p == dir })
			}
		}
		return err
	})
	if err != nil || found < 20 || len(idle) > 0 {
		t.Errorf("%d tests, %v; test-alone has packages without such a test: %v", found, err, idle)
	}
}
