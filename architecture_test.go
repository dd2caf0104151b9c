package signalbox_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/signalbox-ai/signalbox"

// rule says what a package may import (design §5).
type rule struct {
	who string   // package, or prefix ending in /...
	may []string // packages of this module it may depend on, prefixes ending in /...
	not []string // instead of may, for packages that wire others together: what they may not depend on
	std bool     // otherwise only the standard library
	why string
}

var rules = []rule{
	{who: "", std: true, why: "the root is pure vocabulary that anyone may import"},
	{who: "/api", std: true, why: "wire types are for programs in any repository"},
	{who: "/client", may: []string{"/api", "/internal/handshake"}, std: true, why: "the SDK must bring nothing along"},
	{who: "/toolqueue", std: true, why: "the tool queues are for programs in any repository"},
	{who: "/steplimit", std: true, why: "the step limit is for programs in any repository"},
	{who: "/internal/conffile", may: []string{""}, why: "a file is parsed independently of its keys"},
	{who: "/internal/toolconf", may: []string{"", "/toolqueue", "/internal/conffile"}, why: "configuration is data"},
	{who: "/internal/gateway", may: []string{"", "/toolqueue"}, why: "the gateway knows no provider, no entry point and no configuration file"},
	{who: "/internal/tickets", may: []string{"", "/toolqueue", "/internal/store", "/internal/gateway"}, why: "shared tool queues know the store contract, but no store"},
	{who: "/internal/gateway/mcp", may: []string{"", "/api", "/internal/handshake", "/toolqueue", "/internal/agentaddr", "/internal/gateway", "/internal/toolconf", "/internal/conffile", "/internal/proc", "/internal/gateway/mcp/...", "/internal/retryafter"}, why: "a provider is below all ways in"},
	{who: "/internal/gateway/rest", may: []string{"", "/toolqueue", "/internal/agentaddr", "/internal/gateway", "/internal/toolconf", "/internal/conffile", "/internal/gateway/rest/...", "/internal/retryafter"}, why: "a provider is below all ways in"},
	{who: "/internal/gateway/openapi", may: []string{"", "/toolqueue", "/internal/agentaddr", "/internal/gateway", "/internal/gateway/rest", "/internal/toolconf", "/internal/conffile", "/internal/retryafter"}, why: "a provider is below all ways in"},
	{who: "/internal/gateway/endpoint", may: []string{"", "/toolqueue", "/internal/gateway", "/internal/strictjson"}, why: "the MCP endpoint is an entry point and knows no provider"},
	{who: "/internal/gateway/command", may: []string{"", "/toolqueue", "/internal/mask", "/internal/command", "/internal/confine", "/internal/proc", "/internal/gateway", "/internal/toolconf", "/internal/conffile", "/internal/filelock"}, why: "a provider is below all ways in"},
	{who: "/internal/confine", may: []string{"/internal/filelock"}, why: "limits on children know neither tools nor agents"},
	{who: "/internal/command", may: []string{"", "/toolqueue", "/internal/mask", "/internal/confine", "/internal/proc", "/internal/toolconf", "/internal/conffile", "/internal/filelock"}, why: "running a command knows neither tasks nor the gateway"},
	{who: "/internal/execution/local", may: []string{"", "/api", "/internal/execution", "/toolqueue", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/gateway", "/internal/proc", "/internal/tail", "/internal/atomicfile"}, why: "the executor reaches tools through the gateway and knows no entry point"},
	{who: "/internal/doctor", may: []string{"", "/api", "/toolqueue", "/internal/agentaddr", "/internal/store", "/internal/confine", "/internal/toolconf", "/internal/conffile", "/internal/filelock", "/internal/handshake"}, why: "doctor checks the environment of a director without a director"},
	{who: "/internal/llm", may: []string{"/steplimit", "/internal/atomicfile"}, why: "the loop around a model knows neither agents nor tool servers"},
	{who: "/internal/llm/mcptools", may: []string{"/api", "/internal/handshake", "/internal/llm", "/steplimit", "/internal/atomicfile"}, why: "the tools of an MCP endpoint know no agent and no gateway"},
	{who: "/internal/mask", std: true, why: "masking does not depend on whose text it is"},
	{who: "/internal/handshake", may: []string{"/api"}, std: true, why: "clients and servers, including the SDK, share one connection proof"},
	{who: "/internal/httpguard", std: true, why: "all APIs share the checks that run before a handler"},
	{who: "/internal/strictjson", why: "all endpoints share one JSON reader"},
	{who: "/internal/seal", may: []string{"/internal/atomicfile"}, std: true, why: "encryption needs nothing but the standard library"},
	{who: "/internal/proc", why: "process control knows neither agents nor tools"},
	{who: "/internal/giveback", std: true, why: "memory management does not depend on what the process does"},
	{who: "/internal/filelock", std: true, why: "a lock does not depend on what it guards"},
	{who: "/internal/atomicfile", std: true, why: "atomic writes do not depend on the content"},
	{who: "/internal/store", may: []string{""}, std: true, why: "the contract knows only the domain types"},
	{who: "/internal/store/memory", may: []string{"", "/internal/store", "/internal/store/verbs", "/internal/store/pack", "/internal/store/group"}, std: true, why: "a backend knows the rows and no verb"},
	{who: "/internal/store/storetest/model", may: []string{"", "/internal/store"}, std: true, why: "the suite's model shares no code with the stores under test"},
	{who: "/internal/store/pack", may: []string{""}, std: true, why: "encoding of values does not depend on a store"},
	{who: "/internal/store/group", may: []string{"", "/internal/store"}, std: true, why: "group commit does not depend on a backend"},
	{who: "/internal/store/sqlite", may: []string{"", "/internal/store", "/internal/store/verbs", "/internal/store/pack", "/internal/store/group", "/internal/filelock", "/internal/atomicfile"}, why: "a backend knows the rows and no verb"},
	{who: "/internal/store/verbs", may: []string{"", "/internal/store", "/internal/store/pack", "/internal/store/group"}, std: true, why: "the verbs know no server"},
	{who: "/internal/store/postgres", may: []string{"", "/internal/store", "/internal/store/verbs", "/internal/store/pack", "/internal/store/group"}, why: "a backend knows the rows and no verb"},
	{who: "/internal/store/redis", may: []string{"", "/internal/store", "/internal/store/verbs", "/internal/store/pack", "/internal/store/group"}, why: "a backend knows the rows and no verb"},
	{who: "/internal/chaos", std: true, why: "a faulty network does not depend on its traffic"},
	{who: "/internal/failpoint", may: []string{"", "/api", "/internal/store"}, std: true, why: "failpoints wrap contracts and know no part of the product"},
	{who: "/internal/peers", may: []string{"", "/internal/store"}, std: true, why: "liveness of directors does not depend on a queue or a transport"},
	{who: "/internal/callgraph", may: []string{"", "/internal/store"}, std: true, why: "the call graph does not depend on the engine"},
	{who: "/internal/retryafter", std: true, why: "parsing a header does not depend on the caller"},
	{who: "/internal/ratelimit", std: true, why: "rate limits do not depend on what they limit"},
	{who: "/internal/runtimes", may: []string{"", "/internal/store"}, std: true, why: "run time statistics do not depend on the engine"},
	{who: "/internal/gates", may: []string{"", "/toolqueue", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/atomicfile"}, std: true, why: "closed gates are listed without a transport"},
	{who: "/internal/accounts", may: []string{"", "/internal/store"}, std: true, why: "account rules do not depend on the queue"},
	{who: "/internal/budget", may: []string{"", "/internal/store"}, std: true, why: "budget rules do not depend on the queue"},
	{who: "/internal/resources", may: []string{""}, std: true, why: "resource rules do not depend on the queue"},
	{who: "/internal/engine", may: []string{"", "/internal/store", "/internal/seal", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/atomicfile"}, std: true, why: "the rules know no store, no transport and no format"},
	{who: "/internal/agentaddr", std: true, why: "the rule for agent addresses stands alone"},
	{who: "/internal/identity", may: []string{"", "/api", "/internal/handshake"}, why: "authentication does not depend on a store, a transport or a queue"},
	{who: "/internal/tail", may: []string{""}, std: true, why: "log tails do not depend on who writes them"},
	{who: "/internal/execution", may: []string{"", "/api", "/internal/tail", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/atomicfile"}, std: true, why: "the rules of an execution know no transport"},
	{who: "/internal/execution/push", may: []string{"", "/api", "/internal/execution", "/internal/tail", "/internal/agentaddr", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/handshake", "/internal/atomicfile"}, std: true, why: "dispatch is below the director"},
	{who: "/internal/execution/pull", may: []string{"", "/api", "/internal/execution", "/internal/tail", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/atomicfile"}, std: true, why: "pull agents are served below the director, which does not call them"},
	{who: "/internal/cron", std: true, why: "cron times do not depend on a queue or a clock"},
	{who: "/internal/schedule", may: []string{"", "/internal/cron"}, std: true, why: "schedule decisions do not depend on a store, an engine or a transport"},
	{who: "/internal/landing", may: []string{"", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/atomicfile"}, std: true, why: "landing decisions do not depend on a transport"},
	{who: "/internal/schedule/embedded", may: []string{"", "/internal/cron", "/internal/schedule", "/internal/engine", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/atomicfile"}, std: true, why: "the director's own scheduler is below its handlers"},
	{who: "/internal/schedule/standalone", may: []string{"", "/api", "/client", "/internal/cron", "/internal/schedule", "/internal/filelock", "/internal/handshake", "/internal/httpguard", "/internal/atomicfile"}, std: true, why: "a standalone scheduler uses only the queue's API"},
	{who: "/internal/dashboard", std: true, why: "the dashboard reads only the public API"},
	{who: "/internal/port", may: []string{"", "/api"}, why: "importing other queues does not depend on a director"},
	{who: "/internal/top", may: []string{"", "/api", "/client", "/internal/handshake"}, why: "the terminal view is another client of the live stream"},
	{who: "/internal/httpapi", may: []string{"", "/internal/tail", "/internal/cron", "/internal/schedule", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/store", "/internal/seal", "/internal/agentaddr", "/internal/identity", "/internal/gateway", "/internal/gateway/queuetools", "/toolqueue", "/internal/httpapi/...", "/internal/handshake", "/internal/strictjson", "/internal/httpguard", "/internal/atomicfile"}, why: "handlers hold no rules and name no store, dispatcher or agent"},
	{who: "/internal/httpapi/httpio", may: []string{"", "/api", "/internal/strictjson"}, why: "reading requests and writing responses does not depend on tasks"},
	{who: "/internal/httpapi/access", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/handshake", "/internal/identity", "/internal/seal", "/internal/store", "/internal/gateway", "/toolqueue", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/httpapi/view", "/internal/atomicfile"}, why: "access rules are separate from handlers"},
	{who: "/internal/httpapi/forward", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/handshake", "/internal/identity", "/internal/seal", "/internal/store", "/internal/gateway", "/toolqueue", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/httpapi/view", "/internal/atomicfile", "/internal/httpapi/access"}, why: "forwarding to another director knows no handler"},
	{who: "/internal/httpapi/schedules", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/handshake", "/internal/identity", "/internal/seal", "/internal/store", "/internal/gateway", "/toolqueue", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/httpapi/view", "/internal/atomicfile", "/internal/httpapi/access", "/internal/cron", "/internal/schedule"}, why: "handlers of schedules know no other handler"},
	{who: "/internal/httpapi/stream", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/handshake", "/internal/identity", "/internal/seal", "/internal/store", "/internal/gateway", "/toolqueue", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/httpapi/view", "/internal/atomicfile", "/internal/httpapi/access", "/internal/httpapi/forward", "/internal/tail"}, why: "events and output are read from the engine, the runs and other directors"},
	{who: "/internal/httpapi/live", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/seal", "/internal/store", "/internal/gateway", "/toolqueue", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/httpapi/view", "/internal/atomicfile"}, why: "the live view is fed by the engine and knows no handler"},
	{who: "/internal/httpapi/terminal", may: []string{"", "/api", "/internal/agentaddr", "/internal/engine", "/internal/gates", "/toolqueue", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/handshake", "/internal/identity", "/internal/seal", "/internal/store", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/atomicfile"}, why: "terminals know agents and access rules, but no handler"},
	{who: "/internal/gateway/queuetools", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/gateway", "/internal/seal", "/internal/store", "/internal/strictjson", "/internal/httpapi/httpio", "/internal/httpapi/view", "/toolqueue", "/internal/atomicfile"}, why: "the queue's tools call the HTTP API like any client"},
	{who: "/internal/httpapi/view", may: []string{"", "/api", "/internal/engine", "/internal/gates", "/internal/callgraph", "/internal/ratelimit", "/internal/runtimes", "/internal/accounts", "/internal/budget", "/internal/resources", "/internal/seal", "/internal/store", "/internal/gateway", "/toolqueue", "/internal/atomicfile"}, why: "views of rows read no request and no store"},
	{who: "/internal/agentd", may: []string{"", "/api", "/client", "/steplimit", "/internal/mask", "/internal/llm/...", "/internal/llm", "/internal/proc", "/internal/agentd/...", "/internal/filelock", "/internal/handshake", "/internal/strictjson", "/internal/httpguard", "/internal/atomicfile", "/internal/retryafter"}, why: "the agent daemon talks to the director through client"},
	{who: "/internal/cli", may: []string{"", "/api", "/client", "/toolqueue", "/internal/config", "/internal/toolconf", "/internal/conffile", "/internal/cron", "/internal/top", "/internal/port", "/internal/roles", "/internal/handshake", "/internal/atomicfile"}, why: "the CLI talks to the director through client"},
	{who: "/internal/roles", may: []string{"", "/api", "/toolqueue", "/internal/config", "/internal/toolconf", "/internal/conffile", "/internal/cron", "/internal/atomicfile"}, why: "definitions shared by commands and roles know neither"},
	{who: "/internal/lifecycle", std: true, why: "starting and stopping does not depend on the parts"},
	{who: "/internal/serve", not: concat(roles, "/internal/serve/...", "/internal/httpapi/...", "/internal/agentd/...", "/internal/execution/..."), why: "code shared by the roles knows no role"},
	{who: "/internal/serve/tools", not: concat(roles, "/internal/agentd/...", "/internal/execution/push", "/internal/execution/pull"), why: "the tools of a process know no role and no agent"},
	{who: "/internal/serve/scheduler", not: concat(but(roles, "/internal/serve/scheduler"), "/internal/httpapi/...", "/internal/agentd/...", "/internal/execution/..."), why: "a standalone scheduler uses only the queue's API"},
	{who: "/internal/serve/agent", not: concat(but(roles, "/internal/serve/agent"), "/internal/httpapi/...", "/internal/execution/...", "/internal/serve/tools"), why: "an agent talks to the director through client"},
	{who: "/internal/serve/director", not: concat(but(roles, "/internal/serve/director"), "/internal/agentd/..."), why: "a director knows agents only by their HTTP API"},
	{who: "/internal/serve/gateway", not: concat(but(roles, "/internal/serve/gateway"), "/internal/agentd/..."), why: "a standalone gateway has no director and no agents"},
	{who: "/internal/serve/up", not: concat(stores, "/internal/demo", "/internal/serve/gateway", "/internal/serve/scheduler"), why: "up is a director with agents"},
	{who: "/internal/demo", not: concat(stores, "/internal/serve/gateway", "/internal/serve/scheduler"), why: "the demo is a director with agents"},
	{who: "/internal/config", may: []string{"", "/internal/cron", "/toolqueue", "/internal/toolconf", "/internal/conffile", "/internal/atomicfile"}, why: "configuration is data"},
}

// stores are the concrete stores, which only cmd/signalbox names. roles are the packages that
// run a command.
var (
	stores = []string{"/internal/store/memory", "/internal/store/sqlite", "/internal/store/postgres", "/internal/store/redis"}
	roles  = concat(stores, "/internal/cli", "/internal/demo", "/internal/serve/up", "/internal/serve/child", "/internal/serve/director", "/internal/serve/agent",
		"/internal/serve/gateway", "/internal/serve/scheduler")
)

func concat(all []string, more ...string) []string { return slices.Concat(all, more) }

func but(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// TestImportsRunDownhill asserts the import rules with go list, for transitive
// dependencies too.
func TestImportsRunDownhill(t *testing.T) {
	for _, r := range rules {
		t.Run("root"+r.who, func(t *testing.T) {
			for _, dep := range deps(t, module+r.who) {
				if ours, ok := strings.CutPrefix(dep, module); ok {
					if ours != r.who && (r.not == nil && !matches(r.may, ours) || matches(r.not, ours)) {
						t.Errorf("%s depends on %s: %s", module+r.who, dep, r.why)
					}
				} else if r.std {
					t.Errorf("%s depends on %s, which is not standard library: %s", module+r.who, dep, r.why)
				}
			}
		})
	}
}

// fixture is the package with the director fixture of the HTTP API tests.
const fixture = "/internal/httpapi/apitest"

// TestOnlyWiringNamesAStore keeps concrete stores out of everything except
// cmd/signalbox and tests. The benchmarks are a separate module.
func TestOnlyWiringNamesAStore(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		who, imports, _ := strings.Cut(line, ": ")
		if strings.HasPrefix(who, module+"/cmd/") || strings.HasPrefix(who, module+"/internal/store/") || who == module+fixture {
			continue
		}
		for _, i := range strings.Fields(imports) {
			if strings.HasPrefix(i, module+"/internal/store/") && !strings.HasPrefix(i, module+"/internal/store/storetest") {
				t.Errorf("%s imports %s: only cmd/signalbox names a concrete store", who, i)
			}
		}
	}
}

// TestTestSupportDoesNotShip keeps the model of the store suite and the fixture
// of the HTTP API out of the binary.
func TestTestSupportDoesNotShip(t *testing.T) {
	for _, pkg := range deps(t, module+"/cmd/signalbox") {
		if pkg == module+"/internal/store/storetest/model" || pkg == module+fixture {
			t.Errorf("the program depends on %s", pkg)
		}
	}
}

func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(m string) bool {
		if prefix, ok := strings.CutSuffix(m, "/..."); ok {
			return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
		}
		return pkg == m
	})
}

// deps lists what a package, or a tree of them, depends on outside the standard library.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	imports, err := imported()
	if err != nil {
		t.Fatal(err)
	}
	tree, whole := strings.CutSuffix(pkg, "/...")
	found := map[string]bool{}
	var add func(string)
	add = func(name string) {
		if _, ok := imports[name]; ok && !found[name] {
			found[name] = true
			for _, next := range imports[name] {
				add(next)
			}
		}
	}
	for name := range imports {
		if name == tree || whole && strings.HasPrefix(name, tree+"/") {
			add(name)
		}
	}
	if len(found) == 0 {
		t.Fatalf("there is no package %s", pkg)
	}
	return slices.Sorted(maps.Keys(found))
}

// imported returns the imports of each package of the module and of its dependencies outside
// the standard library. It runs the go tool once.
var imported = sync.OnceValues(func() (map[string][]string, error) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, out)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			all[f[0]] = f[1:]
		}
	}
	return all, nil
})

// pacing lists files that measure how long they wait. That time never gets into a row.
var pacing = []string{
	"internal/store/group/batch.go", "internal/store/verbs/retry.go",
	"internal/store/postgres/commit.go", "internal/store/postgres/writer.go",
}

// TestStoresReadNoClock keeps time a parameter. A store that reads a clock cannot
// be simulated, and a clock that jumps would change its rows.
func TestStoresReadNoClock(t *testing.T) {
	for _, dir := range []string{"internal/store", "."} {
		for _, file := range goFiles(t, dir) {
			if slices.Contains(pacing, file) {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, clock := range []string{"time.Now(", "time.Since(", "time.Until(", "strftime('now", "CURRENT_TIMESTAMP", "unixepoch()"} {
				if strings.Contains(string(src), clock) {
					t.Errorf("%s reads a clock (%s): the engine passes the time in", file, clock)
				}
			}
		}
	}
}

// TestRootFilesAreShort asserts that every file of the root package has fewer than
// 300 lines (design §5).
func TestRootFilesAreShort(t *testing.T) {
	for _, file := range goFiles(t, ".") {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n >= 300 {
			t.Errorf("%s has %d lines; must be under 300", file, n)
		}
	}
}

// TestFoldersAndFilesAreSmall asserts that a folder has at most 40 Go files that ship
// and that none of them has more than 500 lines: one can be read in a sitting.
func TestFoldersAndFilesAreSmall(t *testing.T) {
	files := map[string]int{}
	for _, root := range []string{".", "api", "client", "cmd", "internal", "steplimit", "toolqueue"} {
		for _, file := range goFiles(t, root) {
			files[filepath.Dir(file)]++
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(src, []byte("\n")); n > 500 {
				t.Errorf("%s has %d lines; must be at most 500", file, n)
			}
		}
	}
	for dir, n := range files {
		if n > 40 {
			t.Errorf("%s has %d Go files; must be at most 40", dir, n)
		}
	}
}

// goFiles lists the non-test Go files of a folder: the root without its subfolders,
// other folders with them.
func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && dir == "." && path != ".":
			return fs.SkipDir
		case d.IsDir() && d.Name() == "storetest":
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	return files
}
