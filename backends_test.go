package signalbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// backends lists the suites of storetest that each store must run. Compare
// compares the store with the suite's model.
var backends = map[string][]string{
	"memory":   {"Run", "RunFull", "Compare"},
	"sqlite":   {"Run", "RunFull", "Compare", "RunDurable"},
	"postgres": {"Run", "RunFull", "Compare", "RunDurable"},
	"redis":    {"Run", "RunFull", "Compare", "RunDurable"},
}

// TestEveryBackendRunsTheSuite asserts that every store is tested. The suite
// itself fails if one of its cases did not run to its end; this test fails if
// the suite is not called or can be skipped.
func TestEveryBackendRunsTheSuite(t *testing.T) {
	for name, wanted := range backends {
		t.Run(name, func(t *testing.T) {
			p := testsOf(t, "internal/store/"+name)
			for _, suite := range wanted {
				if err := p.runs(suite); err != "" {
					t.Errorf("internal/store/%s: %s", name, err)
				}
			}
		})
	}
}

// TestEveryStoreThatCanBeConfiguredIsABackend finds a store that is wired up but
// not listed above.
func TestEveryStoreThatCanBeConfiguredIsABackend(t *testing.T) {
	const stores = module + "/internal/store/"
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "./cmd/signalbox").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var wired []string
	for _, path := range strings.Fields(string(out)) {
		name, isStore := strings.CutPrefix(path, stores)
		if isStore && name != "verbs" && name != "storetest/invariant" { // the verbs over a backend, and doctor's checks
			wired = append(wired, name)
		}
	}
	slices.Sort(wired)
	if listed := slices.Sorted(maps.Keys(backends)); !slices.Equal(wired, listed) {
		t.Errorf("cmd/signalbox uses the stores %v, but %v are tested", wired, listed)
	}
}

// testFuncs are the functions and methods in the tests of a package that compile
// on this platform, by name.
type testFuncs map[string][]*ast.FuncDecl

func testsOf(t *testing.T, dir string) testFuncs {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{join .TestGoFiles "\n"}}{{"\n"}}{{join .XTestGoFiles "\n"}}`, "./"+dir).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	funcs := testFuncs{}
	for _, name := range strings.Fields(string(out)) {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		funcs.add(t, string(src))
	}
	return funcs
}

func (p testFuncs) add(t *testing.T, src string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			p[f.Name.Name] = append(p[f.Name.Name], f)
		}
	}
}

// runs says why a suite may not run; "" if it always runs. A test must call the
// suite in a top-level statement, and nothing before it may end or skip the test.
func (p testFuncs) runs(suite string) string {
	why := "no test calls storetest." + suite
	for name, list := range p {
		if !strings.HasPrefix(name, "Test") || len(list) != 1 || list[0].Recv != nil {
			continue
		}
		f := list[0]
		at := slices.IndexFunc(f.Body.List, func(s ast.Stmt) bool { return calls(s, suite) })
		switch {
		case at < 0:
			continue
		case slices.ContainsFunc(f.Body.List[:at], ends):
			why = name + " may end before it calls storetest." + suite
		case p.skips(f, map[*ast.FuncDecl]bool{}) != "":
			why = name + " may be skipped by " + p.skips(f, map[*ast.FuncDecl]bool{}) + ": a store that cannot be tested fails"
		default:
			return ""
		}
	}
	return why
}

// calls reports whether a statement is a call of storetest.suite.
func calls(s ast.Stmt, suite string) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	what, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || what.Sel.Name != suite {
		return false
	}
	from, ok := what.X.(*ast.Ident)
	return ok && from.Name == "storetest"
}

// ends reports whether a statement may return from its function.
func ends(s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			found = true
		}
		return !found
	})
	return found
}

// skips returns the name of a function, reachable from f, that skips a test; "" if
// none does.
func (p testFuncs) skips(f *ast.FuncDecl, seen map[*ast.FuncDecl]bool) (by string) {
	seen[f] = true
	ast.Inspect(f.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || by != "" {
			return by == ""
		}
		if id.Name == "Skip" || id.Name == "Skipf" || id.Name == "SkipNow" {
			by = f.Name.Name
		}
		for _, next := range p[id.Name] {
			if by == "" && !seen[next] {
				by = p.skips(next, seen)
			}
		}
		return by == ""
	})
	return by
}

func TestASuiteThatMayBeLeftOutIsFound(t *testing.T) {
	const open = "func open(t *testing.T) { connect(t) }\n"
	for _, c := range []struct {
		said, src string
	}{
		{"", open + "func connect(t *testing.T) {}\nfunc TestX(t *testing.T) { u := 1; storetest.Run(t, func() { open(t); return }) }"},
		{"no test calls", "func TestX(t *testing.T) { storetest.RunFull(t) }"},
		{"no test calls", "func test(t *testing.T) { storetest.Run(t) }"},
		{"no test calls", "func (x) TestX(t *testing.T) { storetest.Run(t) }"},
		{"no test calls", "func TestX(t *testing.T) { if there { storetest.Run(t) } }"},
		{"may end", "func TestX(t *testing.T) { if away { return }; storetest.Run(t) }"},
		{"may be skipped by TestX", "func TestX(t *testing.T) { if away { t.Skip() }; storetest.Run(t) }"},
		{"may be skipped by connect", open + "func connect(t *testing.T) { t.Skipf(``) }\nfunc TestX(t *testing.T) { storetest.Run(t, open) }"},
		{"may be skipped by connect", open + "func connect() {}\nfunc (x) connect(t *testing.T) { t.SkipNow() }\nfunc TestX(t *testing.T) { storetest.Run(t, open) }"},
	} {
		p := testFuncs{}
		p.add(t, "package x\n"+c.src)
		if got := p.runs("Run"); (got == "") != (c.said == "") || !strings.Contains(got, c.said) {
			t.Errorf("said %q, want %q, of\n%s", got, c.said, c.src)
		}
	}
}
