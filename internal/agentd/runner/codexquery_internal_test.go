package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

func windowsText(windows []api.AccountWindow) string {
	var list []string
	for _, w := range windows {
		list = append(list, fmt.Sprintf("%s %v%% %s", w.Name, w.UsedPercent, instant(w.ResetsAt)))
	}
	return strings.Join(list, ", ")
}

// The lines are output of codex app-server, of the version in the file's name, with a ChatGPT
// login and with a key.
func TestCodexAnswersWhatIsUsed(t *testing.T) {
	const head, tail = `{"id":2,"result":{"rateLimits":{`, `}}}`
	for name, c := range map[string]struct{ lines, windows, fails string }{
		"codex-0.169.0-app-server.jsonl":     {windows: "five_hour 42% 2026-11-28T21:06:40Z, seven_day 17% 2026-11-29T21:06:40Z"},
		"codex-0.169.0-app-server-key.jsonl": {fails: "chatgpt authentication required to read rate limits"},
		"another window":                     {lines: head + `"primary":{"usedPercent":7,"windowDurationMins":60,"resetsAt":null}` + tail, windows: "primary 7% "},
		"no windows":                         {lines: head + `"primary":null` + tail},
		"strange members":                    {lines: head + `"primary":{"usedPercent":"many","resetsAt":-5},"secondary":{"usedPercent":1e99}` + tail, windows: "primary 0% , secondary 1000% "},
		"no object":                          {lines: `{"id":2,"result":"none"}`, fails: "not understood"},
		"no result":                          {lines: `{"id":2}`, fails: "not understood"},
		"initialize fails":                   {lines: `{"id":1,"error":{"message":"Not initialized\u001b[31m"}}`, fails: "it answers: Not initialized"},
		"noise first":                        {lines: "Warning: x\n[]\n{\"method\":\"error\"}\n" + head + tail},
		"twice":                              {lines: head + `"primary":{"usedPercent":1}` + tail + "\n" + head + `"primary":{"usedPercent":2}` + tail, windows: "primary 1% "},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(name, ".jsonl") {
				b, err := os.ReadFile(filepath.Join("testdata", "limits", name))
				if err != nil {
					t.Fatal(err)
				}
				c.lines = string(b)
			}
			var q LimitsQuery
			var done bool
			for line := range strings.Lines(c.lines) {
				done = q.Line([]byte(line))
			}
			windows, err := q.Windows()
			if got := windowsText(windows); !done || got != c.windows || (err != nil) != (c.fails != "") || (err != nil && (!strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "\x1b"))) {
				t.Errorf("answered %v: %q, %v; want %+v", done, got, err, c)
			}
		})
	}
}

// Only a ChatGPT login is queried for its windows, with lines that are JSON-RPC.
func TestLimitsQueryNeedsAChatGPTLogin(t *testing.T) {
	const login = `{"tokens":{"account_id":"w"}}`
	for name, c := range map[string]struct {
		kind, auth, config string
		environ            []string
		asked              bool
	}{
		"login":               {auth: login, environ: []string{"OPENAI_API_KEY=sk-1"}, asked: true},
		"login, named openai": {auth: login, config: `model_provider = "openai"`, asked: true},
		"key beside a login":  {auth: login, environ: []string{"CODEX_API_KEY=sk-1"}},
		"login with a key":    {auth: `{"OPENAI_API_KEY":"sk-1"}`},
		"another provider":    {auth: login, config: "model_provider = \"local\"\n[model_providers.local]\nbase_url = \"http://127.0.0.1:1\"\n"},
		"not logged in":       {},
		"claude":              {kind: "claude", auth: login},
		"opencode":            {kind: "opencode", auth: login},
	} {
		home := t.TempDir()
		for file, text := range map[string]string{"auth.json": c.auth, "config.toml": c.config} {
			if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, ".codex", file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := New(cmp.Or(c.kind, "codex"), Options{Binary: "/bin/sh"})
		if err != nil {
			t.Fatal(err)
		}
		q := r.LimitsQuery(home, c.environ)
		if (q != nil) != c.asked {
			t.Errorf("%s: %+v", name, q)
		}
		if q == nil {
			continue
		}
		for line := range strings.Lines(q.Input) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q is no JSON", line)
			}
		}
		if !slices.Equal(q.Argv, []string{"/bin/sh", "app-server"}) || !slices.Equal(q.Env, []string{"CODEX_HOME=" + filepath.Join(home, ".codex")}) {
			t.Errorf("%s: %q %q", name, q.Argv, q.Env)
		}
	}
	gone, err := New("codex", Options{Binary: "/nowhere/codex"})
	if err != nil {
		t.Fatal(err)
	}
	if q := gone.LimitsQuery(t.TempDir(), nil); q != nil {
		t.Errorf("a missing CLI is asked: %+v", q)
	}
}
