package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var proofForm = regexp.MustCompile("`([a-zA-Z0-9./]+)` ((?:Test|Fuzz)[A-Za-z0-9_]+)")

// docs/threat-model.md names existing tests, a proof for each attack, and every
// attack test.
func TestThreatsHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile("../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	there := allTests(t)
	named := map[string]bool{}
	attacks := 0
	_, after, found := strings.Cut(string(page), "\n## Attacks\n")
	rows, _, ends := strings.Cut(after, "\n## What is not defended\n")
	if !found || !ends {
		t.Fatal("the page has lost its sections")
	}
	for line := range strings.Lines(rows) {
		tests := proofForm.FindAllStringSubmatch(line, -1)
		for _, m := range tests {
			named[m[1]+" "+m[2]] = true
			if !there[m[1]+" "+m[2]] {
				t.Errorf("docs/threat-model.md names %s of %s, and there is no such test", m[2], m[1])
			}
		}
		if strings.Count(line, " | ") == 2 && !strings.HasPrefix(line, "| attack") {
			if attacks++; len(tests) == 0 {
				t.Errorf("an attack without a proof: %s", line)
			}
		}
	}
	if attacks < 40 {
		t.Errorf("the page has %d attacks only", attacks)
	}
	for name := range there {
		if strings.Contains(name, " TestAttack") && !named[name] {
			t.Errorf("docs/threat-model.md does not name %s", name)
		}
	}
}

// allTests finds all tests in the sources, by folder and name; the root folder
// is ".".
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				found[filepath.ToSlash(folder)+" "+f.Name.Name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
