package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/soak"
)

// outside are the scenarios of the conformance suite that do not apply, with
// the reason. docs/mcp.md has the same list.
var outside = map[string]string{
	"completion-complete":                           noPrompts,
	"prompts-list":                                  noPrompts,
	"prompts-get-simple":                            noPrompts,
	"prompts-get-with-args":                         noPrompts,
	"prompts-get-embedded-resource":                 noPrompts,
	"prompts-get-with-image":                        noPrompts,
	"resources-list":                                noResources,
	"resources-read-text":                           noResources,
	"resources-read-binary":                         noResources,
	"resources-templates-read":                      noResources,
	"resources-subscribe":                           noResources,
	"resources-unsubscribe":                         noResources,
	"sep-2164-resource-not-found":                   noResources,
	"sep-2640-skills-directory":                     noResources,
	"sep-2640-skills-enumeration":                   noResources,
	"sep-2640-skills-manifest":                      noResources,
	"logging-set-level":                             noLogging,
	"tools-call-with-logging":                       noLogging,
	"tools-call-sampling":                           noQuestions,
	"tools-call-elicitation":                        noQuestions,
	"elicitation-sep1034-defaults":                  noQuestions,
	"elicitation-sep1330-enums":                     noQuestions,
	"server-sse-polling":                            noResumption,
	"tasks-mrtr-input":                              noQuestions,
	"tasks-mrtr-composition":                        noQuestions,
	"tasks-status-notifications":                    "the suite does not check these yet, whoever serves them",
	"tasks-required-task-error":                     "no tool requires tasks: a client that did not declare them is answered with the task's id, and can poll with plain tools",
	"input-required-result-basic-elicitation":       noQuestions,
	"input-required-result-basic-sampling":          noQuestions,
	"input-required-result-basic-list-roots":        noQuestions,
	"input-required-result-request-state":           noQuestions,
	"input-required-result-multiple-input-requests": noQuestions,
	"input-required-result-multi-round":             noQuestions,
	"input-required-result-missing-input-response":  noQuestions,
	"input-required-result-non-tool-request":        noQuestions,
	"input-required-result-result-type":             noQuestions,
	"input-required-result-unsupported-methods":     noQuestions,
	"input-required-result-tampered-state":          noQuestions,
	"input-required-result-capability-check":        noQuestions,
	"input-required-result-ignore-extra-params":     noQuestions,
	"input-required-result-validate-input":          noQuestions,
}

const (
	noPrompts    = "only tools are served: no prompts, and nothing to complete"
	noResources  = "only tools are served: no resources"
	noLogging    = "log messages of tool servers are not handed on"
	noQuestions  = "tools cannot ask the client back (elicitation, sampling, roots): a call waits in a queue that others share, and a task may outlive its client"
	noResumption = "streams are not resumed: a call whose connection breaks leaves its line"
)

// unmet are checks in other scenarios that do not apply.
var unmet = map[string]string{
	"sep-2549-prompts-list-caching-hints":                        noPrompts,
	"sep-2549-resources-list-caching-hints":                      noResources,
	"sep-2549-resources-templates-list-caching-hints":            noResources,
	"sep-2549-resources-read-caching-hints":                      noResources,
	"sep-2575-server-sends-prompts-list-changed-on-subscription": noPrompts,
}

// names matches the scenarios whose tools are an MCP server's. The gateway
// prefixes them with the server's name; a proxy in between removes the
// prefix.
var names = regexp.MustCompile(`^(tools-call-.*|json-schema-2020-12|server-stateless|http-.*|server-sse-.*)$`)

// suite runs the conformance suite against an endpoint.
type suite struct {
	*box
	node, program string
	direct, named string // URLs
}

// scenario is a scenario of the suite, for versions of the protocol; for an
// extension, versions is empty.
type scenario struct {
	name     string
	versions []string
}

type check struct {
	ID, Name, Status, Description, ErrorMessage string
}

func (s *suite) run(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*long)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, append([]string{s.program}, args...)...)
	cmd.Dir, cmd.Env = dir, s.environ(compileCache())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var listed = regexp.MustCompile(`(?m)^  - (\S+) \[([^\]]*)\]$`)

func (s *suite) scenarios() []scenario {
	s.t.Helper()
	out, err := s.run(s.work, "list", "--server")
	if err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	var all []scenario
	for _, m := range listed.FindAllStringSubmatch(out, -1) {
		one := scenario{name: m[1]}
		if m[2] != "extension" {
			one.versions = strings.Split(m[2], ",")
		}
		all = append(all, one)
	}
	if len(all) < 50 {
		s.t.Fatalf("the suite lists %d scenarios: %s", len(all), out)
	}
	return all
}

// resultsFolder matches the folder with the results of a scenario.
var resultsFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

// ofVersion runs all scenarios for a version of the protocol, in one process
// per endpoint, and returns their checks. Scenarios that do not apply run as
// well, and fail.
func (s *suite) ofVersion(version string) (map[string][]check, error) {
	got, err := s.checks(s.direct, "--suite", "all", "--spec-version", version)
	if err != nil {
		return nil, err
	}
	named, err := s.checks(s.named, "--suite", "all", "--spec-version", version)
	for name, checks := range named {
		if names.MatchString(name) {
			got[name] = checks
		}
	}
	return got, err
}

// ofExtension runs one scenario.
func (s *suite) ofExtension(name string) ([]check, error) {
	at := s.direct
	if names.MatchString(name) {
		at = s.named
	}
	got, err := s.checks(at, "--scenario", name)
	return got[name], err
}

// checks runs scenarios and returns their checks. A scenario without results
// has failed. The caller judges failed checks.
func (s *suite) checks(at string, which ...string) (map[string][]check, error) {
	dir, err := os.MkdirTemp(s.work, "conformance")
	if err != nil {
		return nil, err
	}
	said, runErr := s.run(dir, append([]string{"server", "--url", at, "-o", dir, "--timeout", "90000"}, which...)...)
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no results: %v, %v\n%s", err, runErr, said)
	}
	all := map[string][]check{}
	for _, path := range files {
		name := resultsFolder.FindStringSubmatch(filepath.Base(filepath.Dir(path)))
		data, err := os.ReadFile(path)
		if err != nil || name == nil {
			return nil, fmt.Errorf("%s: %v", path, err)
		}
		var got []check
		if err := json.Unmarshal(data, &got); err != nil {
			return nil, err
		}
		all[name[1]] = got
	}
	return all, nil
}

// unnamed is a proxy between the suite and a director that calls the tools of
// the MCP server "conformance" by their own names.
func unnamed(t *testing.T, director string) string {
	t.Helper()
	to, err := url.Parse(director)
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "conformance__"
	own := regexp.MustCompile(`("name":")((?:test|json)_)`)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if name := r.Out.Header.Get("Mcp-Name"); strings.HasPrefix(strings.TrimSpace(name), "test_") || strings.HasPrefix(name, "json_") {
				r.Out.Header.Set("Mcp-Name", prefix+strings.TrimSpace(name))
			}
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				return // the director sees a truncated body
			}
			body = own.ReplaceAll(body, []byte("${1}"+prefix+"${2}"))
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = struct {
				io.Reader
				io.Closer
			}{&without{bufio.NewReader(r.Body), nil, []byte(`"` + prefix)}, r.Body}
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// without reads lines and removes a prefix of names.
type without struct {
	from   *bufio.Reader
	rest   []byte
	prefix []byte
}

func (w *without) Read(b []byte) (int, error) {
	if len(w.rest) == 0 {
		line, err := w.from.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		w.rest = bytes.ReplaceAll(line, w.prefix, []byte(`"`))
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// conformance starts a director with the tools that the suite needs.
func (b *box) conformance() *suite {
	b.t.Helper()
	program := fromNPM(b.t, "@modelcontextprotocol/conformance/dist/index.js")
	node := onPath(b.t, "node")
	b.withSystemPath()
	library := filepath.Dir(filepath.Dir(fromNPM(b.t, "@modelcontextprotocol/sdk/dist/esm/client/index.js")))
	d := b.director("--open", "--tools", b.toolFile("tools.json", object{ // the suite cannot send a token
		"queues":       queuesOf(nil),
		"mcpServers":   object{"conformance": object{"command": node, "args": []string{b.testdata("conformance-tools.mjs"), library}}},
		"commandTools": conformanceCommands(node, b.testdata("conformance-command.mjs")),
	}))
	b.toolsReady(d.url, "conformance")
	return &suite{box: b, node: newerNode(b.t), program: program, direct: d.url + "/mcp", named: unnamed(b.t, d.url) + "/mcp"}
}

// conformanceCommands are the tools of the scenarios about tasks.
func conformanceCommands(node, script string) object {
	tool := func(name string, more object) object {
		entry := object{"command": node, "args": []string{script, name}, "description": "The suite's " + name + ".", "inputSchema": object{"type": "object"}}
		for k, v := range more {
			entry[k] = v
		}
		return entry
	}
	return object{
		"greet":              tool("greet", nil),
		"slow_compute":       tool("slow_compute", object{"async": true}),
		"failing_job":        tool("failing_job", object{"async": true}),
		"protocol_error_job": tool("protocol_error_job", object{"async": true, "timeoutMs": 1000}),
		"confirm_delete":     tool("confirm_delete", object{"async": true}),
	}
}

// testdata returns the path of a file in the folder testdata.
func (b *box) testdata(name string) string {
	b.t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		b.t.Fatal(err)
	}
	return path
}

// oldestTried is the oldest version of the protocol that make test tries: the
// newest one with a handshake; newer ones are tried too. make soak also tries
// older ones.
const oldestTried = "2025-11-25"

// Every applicable scenario of the conformance suite passes against the real
// endpoint, in each of its protocol versions. Each scenario either applies or
// has its reason above.
func TestMCPConformance(t *testing.T) {
	s := newBox(t).conformance()
	begin, seen, runs := time.Now(), map[string]bool{}, 0
	extensions, versions := []string{}, map[string][]string{} // by version
	for _, one := range s.scenarios() {
		seen[one.name] = true
		if outside[one.name] != "" {
			continue
		}
		if one.versions == nil {
			extensions = append(extensions, one.name)
			runs++
		}
		for _, version := range one.versions {
			if version >= oldestTried || soak.On() {
				versions[version] = append(versions[version], one.name)
				runs++
			}
		}
	}
	for name := range outside {
		if !seen[name] {
			t.Errorf("the suite has no scenario %s any more", name)
		}
	}
	var mu sync.Mutex
	used, ran, passed := map[string]bool{}, 0, 0
	judge := func(t *testing.T, got []check) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		ran++
		if len(got) == 0 {
			t.Error("it has left no results")
		}
		for _, c := range got {
			switch {
			case c.Status == "SUCCESS" || c.Status == "INFO":
				passed++
			case unmet[c.ID] != "":
				used[c.ID] = true
			default:
				t.Errorf("%s: %s (%s): %s", c.Status, c.ID, c.Description, c.ErrorMessage)
			}
		}
	}
	t.Run("scenarios", func(t *testing.T) {
		for version, names := range versions {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				got, err := s.ofVersion(version)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					t.Run(name, func(t *testing.T) { judge(t, got[name]) })
				}
			})
		}
		for _, name := range extensions {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got, err := s.ofExtension(name)
				if err != nil {
					t.Fatal(err)
				}
				judge(t, got)
			})
		}
	})
	for id := range unmet {
		if !used[id] && ran == runs { // unless -run selected some
			t.Errorf("the check %s has passed, or is gone: it needs no reason any more", id)
		}
	}
	t.Logf("%d runs of scenarios, %d checks passed, in %v", ran, passed, time.Since(begin).Round(time.Millisecond))
	s.nothingHeld(strings.TrimSuffix(s.direct, "/mcp"))
}

// docs/mcp.md gives the reason for each scenario and check that does not
// apply.
func TestConformanceListIsThatOfTheDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(data), "\n## Conformance\n")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| ([^|]*) \\|$").FindAllStringSubmatch(part, -1) {
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(m[1], -1) {
			rows[name[1]] = strings.TrimSpace(m[2])
		}
	}
	for _, list := range []map[string]string{outside, unmet} {
		for name, reason := range list {
			if rows[name] != reason {
				t.Errorf("docs/mcp.md says of %s %q, want %q", name, rows[name], reason)
			}
			delete(rows, name)
		}
	}
	for name := range rows {
		t.Errorf("docs/mcp.md has %s, which is not in the lists here", name)
	}
}
