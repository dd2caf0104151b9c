package signalbox_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// secretName matches the names of values that a timing attack on a comparison
// could reveal byte by byte.
var secretName = regexp.MustCompile(`(?i)(secret|token|password|passwd|ticket|cookie|apikey|credential|bearer|hash|digest|signature)$`)

// harmless lists comparisons of values with such names that are no secret to the
// caller who triggers the comparison.
var harmless = map[string]string{
	"audit.go: row.Prev != hash":                                                   "the chain is public to whoever may read it",
	"audit.go: row.Sum != row.Hash":                                                "as above",
	"internal/cli/audit.go: row.Hash == want.Hash":                                 "as above",
	"internal/httpapi/access/gate.go: route.Scope == api.ScopeTicket":              "the name of a scope",
	"internal/httpapi/mount.go: route.Scope != api.ScopeTicket":                    "the name of a scope",
	"internal/httpapi/openapi.go: route.Scope != api.ScopeTicket":                  "the name of a scope",
	"internal/execution/push/agents.go: bytes.Equal(a.SealedToken, b.SealedToken)": "two rows of the store",
	"internal/execution/push/agents.go: l.conn.token != c.token":                   "two rows of the store, opened",
	"internal/engine/submit.go: old != sub.Task.IdempotencyHash":                   "two digests of one request, to whoever sent it",
	"internal/gateway/mcp/interceptor.go: r.token == token":                        "the token of MCP's progress, a number of ours",
	"internal/gateway/openapi/body.go: p.In == openapi3.ParameterInCookie":         "the name of a place",
	"internal/gateway/openapi/operation.go: a.in == openapi3.ParameterInCookie":    "the name of a place",
	"internal/identity/login.go: latest.Password != u.Password":                    "two rows of the store, both hashes",
	"internal/llm/mcptools/carrier.go: r.token == token":                           "the token of MCP's progress, a number of ours",
	"internal/store/query.go: known.IdempotencyHash != t.IdempotencyHash":          "of a request, to whoever sent it",
	"internal/store/query.go: bytes.Equal(a.SealedToken, b.SealedToken)":           "two rows of the store",
}

// TestSecretsAreComparedInConstantTime searches all non-test code for == and !=
// between values that are named like secrets.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	used := map[string]bool{}
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "bench" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			at, what := comparison(n)
			if what == "" {
				return true
			}
			key := filepath.ToSlash(path) + ": " + what
			used[key] = true
			if harmless[key] == "" {
				t.Errorf("%s: %s compares a value that is named like a secret: use crypto/subtle, or say in this test why it is none", set.Position(at), what)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range harmless {
		if !used[key] {
			t.Errorf("%s is listed as harmless but does not exist", key)
		}
	}
	if files < 300 {
		t.Errorf("only %d files were looked at", files)
	}
}

// comparison returns the position and text of a comparison of two values if one is
// named like a secret and neither is a constant.
func comparison(n ast.Node) (token.Pos, string) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && !fixed(n.X) && !fixed(n.Y) && (secretive(n.X) || secretive(n.Y)) {
			return n.OpPos, fmt.Sprintf("%s %s %s", nameOf(n.X), n.Op, nameOf(n.Y))
		}
	case *ast.CallExpr: // bytes.Equal and the like stop at the first difference, too
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 2 && (f.Sel.Name == "Equal" || f.Sel.Name == "Compare" || f.Sel.Name == "EqualFold") {
			if x, ok := f.X.(*ast.Ident); ok && (x.Name == "bytes" || x.Name == "strings" || x.Name == "slices") && (secretive(n.Args[0]) || secretive(n.Args[1])) {
				return n.Pos(), fmt.Sprintf("%s.%s(%s, %s)", x.Name, f.Sel.Name, nameOf(n.Args[0]), nameOf(n.Args[1]))
			}
		}
	}
	return token.NoPos, ""
}

// fixed reports whether an operand is a constant.
func fixed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "true" || e.Name == "false"
	case *ast.ParenExpr:
		return fixed(e.X)
	}
	return false
}

func secretive(e ast.Expr) bool { return secretName.MatchString(nameOf(e)) }

// nameOf returns the name of an operand.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		if len(e.Args) == 1 { // string(x), []byte(x), strings.TrimSpace(x)
			return nameOf(e.Args[0])
		}
		return nameOf(e.Fun)
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.SliceExpr:
		return nameOf(e.X)
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.UnaryExpr:
		return nameOf(e.X)
	case *ast.ParenExpr:
		return nameOf(e.X)
	}
	return "?"
}
