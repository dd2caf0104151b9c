package signalbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parsers lists the parsers of untrusted text or bytes, and the fuzz target of
// each. make fuzz runs all targets; go test runs the inputs that they found before.
var parsers = map[string]string{ // input: package and fuzz target
	"bodies of the API, each route":         "internal/httpapi FuzzRoutes",
	"bodies of the API, strictly":           "internal/httpapi FuzzBody",
	"bodies of the API, as JSON":            "internal/strictjson FuzzParse",
	"queries and filters of the API":        "internal/httpapi FuzzQueries",
	"places of pages":                       "internal/httpapi FuzzCursors",
	"headers of the API":                    "internal/httpapi FuzzHeaders",
	"terminal messages":                     "internal/httpapi/terminal FuzzTerminal",
	"the grammar of the search":             ". FuzzQuery",
	"logs of what failed":                   ". FuzzFailureLine",
	"names, ids, sessions and queues":       ". FuzzNames",
	"bodies of the agent API":               "internal/agentd FuzzTask",
	"slots of an agent's ledger":            "internal/agentd FuzzSlot",
	"an agent's ledger":                     "internal/agentd FuzzLedger",
	"what coding CLIs print":                "internal/agentd/runner FuzzStreams",
	"what providers say of their limits":    "internal/agentd/runner FuzzLimits",
	"what a model's endpoint streams":       "internal/llm FuzzAnswers",
	"arguments that a model wrote":          "internal/llm FuzzArguments",
	"signalbox.yaml":                        "internal/config FuzzFile",
	".mcp.json, .ai-agent.json, tools":      "internal/toolconf FuzzFile",
	"argument lists of command tools":       "internal/toolconf FuzzCommands",
	"YAML and JSON of configuration":        "internal/conffile FuzzParse",
	"JSON of configuration, as JSON":        "internal/conffile FuzzJSON",
	"variables in configuration":            "internal/conffile FuzzExpand",
	"cron expressions and time zones":       "internal/cron FuzzParse",
	"OpenAPI descriptions":                  "internal/gateway/openapi FuzzDescription",
	"arguments of OpenAPI tools":            "internal/gateway/openapi FuzzArguments",
	"templates of REST tools":               "internal/gateway/rest FuzzTemplates",
	"schemas of tools":                      "internal/gateway/rest FuzzSchema",
	"messages of MCP servers, over a pipe":  "internal/gateway/mcp FuzzLines",
	"messages of MCP servers, as events":    "internal/gateway/mcp FuzzEvents",
	"messages of MCP servers, too large":    "internal/gateway/mcp FuzzScan",
	"messages of MCP clients":               "internal/gateway/endpoint FuzzFrames",
	"the director's events, in the SDK":     "client FuzzMessages",
	"the director's address, in the SDK":    "client FuzzAddress",
	"addresses of agents and upstreams":     "internal/agentaddr FuzzAddresses",
	"hashes of passwords":                   "internal/identity FuzzPHC",
	"sealed values":                         "internal/seal FuzzOpen",
	"secret keys":                           "internal/seal FuzzKey",
	"traceparent":                           "internal/telemetry FuzzTraceparent",
	"levels of the log":                     "internal/telemetry FuzzLevel",
	"secrets in what commands print":        "internal/mask FuzzMask",
	"the kernel's tables of control groups": "internal/confine FuzzTrees",
	"files of the seeds' own queues":        "internal/port FuzzSources",
	"text for a terminal":                   "internal/cli FuzzNeutralise",
	"places of tool tasks":                  "internal/store FuzzPlace",
	"secret arguments of tool tasks":        "internal/execution/local FuzzSecrets",
	"places of sessions":                    "internal/store FuzzSessionSpot",
	"places of history":                     "internal/store FuzzParseCursor",
	"addresses of PostgreSQL":               "internal/store/postgres FuzzURL",
	"addresses of Redis":                    "internal/store/redis FuzzURL",
	"rows in Redis":                         "internal/store/redis FuzzRows",
	"packed values":                         "internal/store/pack FuzzUnpack",
	"packed entries":                        "internal/store/pack FuzzReadEntries",
	"packed extras":                         "internal/store/pack FuzzUnpackExtra",
	"packed schedules":                      "internal/store/pack FuzzUnpackSchedule",
	"packed rows":                           "internal/store/pack FuzzReadRows",
	"packed tasks":                          "internal/store/pack FuzzReadTask",
}

// readElsewhere lists packages with functions that look like parsers of untrusted
// text, and why they need no fuzz target.
var readElsewhere = map[string]string{
	"api":                               "reads one JSON value with encoding/json",
	"internal/top":                      "reads keys, and what the SDK has read",
	"internal/testserver":               "tests only",
	"internal/httpapi/apitest":          "tests only",
	"internal/execution/push/agenttest": "tests only",
	"internal/llm/llmtest":              "tests only",
	"internal/httpapi/httpio":           "read by internal/httpapi FuzzBody",
	"internal/llm/wire":                 "read by internal/llm FuzzAnswers",
	"internal/proc":                     "reads the kernel's tables of processes",
	"internal/dashboard":                "reads its own files",
	"internal/schedule/standalone":      "reads what the SDK has read",
	"internal/store/storetest":          "tests only",
	"toolqueue":                         "reads no text",
	"scripts/release":                   "reads what git and go print",
}

var parserName = regexp.MustCompile(`^(parse|Parse|decode|Decode|unmarshal|Unmarshal|unpack|Unpack|split|Split)([A-Z].*)?$`)

// TestEveryParserIsFuzzed asserts that each listed target exists, that each
// existing target is listed, and that no package has a parser without a target.
func TestEveryParserIsFuzzed(t *testing.T) {
	targets, readers := map[string]bool{}, map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || path == "bench" || path == "e2e" || path == "sim" || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			return look(path, targets, readers)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named, packages := map[string]bool{}, map[string]bool{}
	for what, target := range parsers {
		pkg, _, _ := strings.Cut(target, " ")
		named[target], packages[pkg] = true, true
		if !targets[target] {
			t.Errorf("%s: there is no %s", what, target)
		}
	}
	for target := range targets {
		if !named[target] {
			t.Errorf("%s is not listed: add it to parsers with its input", target)
		}
	}
	for pkg, names := range readers {
		if !packages[pkg] && readElsewhere[pkg] == "" {
			slices.Sort(names)
			t.Errorf("%s reads text (%s) and has no fuzz target: write one and name it in parsers, or say in readElsewhere why it needs none", pkg, strings.Join(names, ", "))
		}
	}
	if len(readers) < 10 {
		t.Errorf("only %d packages read text: this test searches the wrong places", len(readers))
	}
}

// look records the fuzz targets of a file and its functions that look like parsers
// of text.
func look(path string, targets map[string]bool, readers map[string][]string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := filepath.ToSlash(filepath.Dir(path))
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		switch test := strings.HasSuffix(path, "_test.go"); {
		case test && strings.HasPrefix(f.Name.Name, "Fuzz") && f.Recv == nil:
			targets[pkg+" "+f.Name.Name] = true
		case !test && parserName.MatchString(f.Name.Name) && takesText(f):
			readers[pkg] = append(readers[pkg], f.Name.Name)
		}
	}
	return nil
}

// takesText reports whether a function takes a string, bytes or a reader.
func takesText(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		switch p := p.Type.(type) {
		case *ast.Ident:
			if p.Name == "string" {
				return true
			}
		case *ast.ArrayType:
			if e, ok := p.Elt.(*ast.Ident); ok && e.Name == "byte" {
				return true
			}
		case *ast.SelectorExpr:
			if p.Sel.Name == "Reader" || p.Sel.Name == "RawMessage" {
				return true
			}
		}
	}
	return false
}
