package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// documented reads docs/metrics.md: type by name, of the metrics of a role.
func (b *box) documented(role string) map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(b.read("../docs/metrics.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 6 && strings.HasPrefix(line, "| `") && slices.Contains(strings.Split(strings.TrimSpace(cells[4]), ", "), role) {
			out[strings.Trim(strings.TrimSpace(cells[0]), "`")] = strings.TrimSpace(cells[1])
		}
	}
	if len(out) == 0 {
		b.t.Fatalf("docs/metrics.md names no metric of a %s", role)
	}
	return out
}

var typeLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// measured compares a role's answer to GET /metrics with the page, in both
// directions.
func (b *box) measured(role, url string) {
	b.t.Helper()
	code, text := b.ask(http.MethodGet, url+"/metrics", "")
	if code != http.StatusOK {
		b.t.Fatalf("%s: %d %s", role, code, text)
	}
	want, have := b.documented(role), map[string]bool{}
	for _, m := range typeLine.FindAllStringSubmatch(text, -1) {
		name, kind := m[1], m[2]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		have[name] = true
		if want[name] != kind {
			b.t.Errorf("a %s has %s as a %s; docs/metrics.md says %q", role, name, kind, want[name])
		}
	}
	for name := range want {
		// No schedule fails, no gate is closed, no agent is of kind llm, and none uses an account.
		if !have[name] && name != "signalbox_schedule_failing" && name != "signalbox_gate_closed" && !strings.HasPrefix(name, "signalbox_agent_step_") && !strings.HasPrefix(name, "signalbox_account_") && !strings.HasPrefix(name, "signalbox_budget_") {
			b.t.Errorf("docs/metrics.md names %s, which a %s does not have", name, role)
		}
	}
}

// Each role's answer to GET /metrics matches docs/metrics.md, once there is
// something to count.
func TestEachRoleHasTheMetricsOfThePage(t *testing.T) {
	b := newBox(t)
	upstream := b.pong()
	config := b.file("signalbox.yaml", `
seed_metrics: true
queues: {default: {concurrent: 4}}
restTools:
  ping: {description: says pong, method: GET, url: "`+upstream+`", parametersSchema: {type: object}}
jobs:
  - {name: nightly, schedule: "0 1 * * *", prompt: tidy up}
`, 0o600)
	director := b.director("--config", config)
	b.agent("worker", director.url)
	c := b.client(director.url)
	b.completed(c, b.submit(c, api.SubmitRequest{Prompt: "p"}))
	for role, url := range map[string]string{"director": director.url, "gateway": b.serve("gateway", "--config", config, "--addr", "127.0.0.1:0").url} {
		if code, said := b.ask(http.MethodPost, url+"/api/tools/rest__ping/call", `{}`); code != http.StatusOK {
			t.Fatalf("%s: %d %s", role, code, said)
		}
		b.measured(role, url)
	}
	b.measured("scheduler", b.serve("scheduler", "--config", config, "--data", b.root+"/scheduler", "--addr", "127.0.0.1:0", "--director", director.url).url)
}

// pong is the URL of a server for a REST tool.
func (b *box) pong() string {
	b.t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pong") }))
	b.t.Cleanup(s.Close)
	return s.URL
}
