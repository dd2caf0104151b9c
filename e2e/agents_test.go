package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// The real coding CLIs, started by signalbox up, with scripted models.
var cliKinds = []string{"claude", "codex", "opencode"}

// installed returns a CLI that scripts/install-agents.sh has installed, or
// skips the test; in CI a missing CLI is a failure.
func installed(t *testing.T, kind string) string {
	t.Helper()
	dir := os.Getenv("SIGNALBOX_TEST_AGENTS")
	if dir == "" {
		dir = filepath.Join("..", ".cache", "agents", "bin")
	}
	path, err := filepath.Abs(filepath.Join(dir, kind))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		return path
	}
	lacking(t, fmt.Sprintf("%s is not installed: run scripts/install-agents.sh and set SIGNALBOX_TEST_AGENTS to the folder that it prints (%v)", kind, err))
	return ""
}

// withCLIs puts the CLIs on the box's PATH, each configured, as a user would
// do, for a scripted model of its own.
func (b *box) withCLIs() map[string]*model.Server {
	b.t.Helper()
	models := map[string]*model.Server{}
	for _, kind := range cliKinds {
		if err := os.Symlink(installed(b.t, kind), filepath.Join(b.bin, kind)); err != nil {
			b.t.Fatal(err)
		}
		m, err := model.Start(model.Replies(model.Reply{}))
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(m.Close)
		models[kind] = m
	}
	b.quietCLIs()
	b.vars["CLAUDE_CODE_MAX_RETRIES"] = "0"
	b.vars["ANTHROPIC_BASE_URL"], b.vars["ANTHROPIC_API_KEY"] = models["claude"].URL, "test-key"
	b.vars["OPENAI_API_KEY"] = "test-key"
	b.file("home/.codex/config.toml", fmt.Sprintf(codexConfig, models["codex"].URL), 0o600)
	b.file("home/.npmrc", "offline=true\n", 0o600) // at its first start in a home opencode would download 90 MB
	// An empty catalogue of models: reading the built-in one takes a third of the
	// start.
	b.vars["OPENCODE_MODELS_PATH"] = b.file("home/models.json", "{}", 0o600)
	b.file("home/.config/opencode/opencode.json", fmt.Sprintf(opencodeConfig, models["opencode"].URL), 0o600)
	return models
}

// quietCLIs makes the CLIs contact nothing but their model.
func (b *box) quietCLIs() {
	b.withSystemPath()
	for _, name := range []string{
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING",
		"OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_DEFAULT_PLUGINS",
	} {
		b.vars[name] = "1"
	}
}

const codexConfig = `
model = "scripted"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "%s/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
`

const opencodeConfig = `{
  "model": "local/scripted", "small_model": "local/scripted", "autoupdate": false, "share": "disabled",
  "provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local",
    "options": {"baseURL": "%s/v1", "apiKey": "test-key"}, "models": {"scripted": {"name": "scripted"}}}}}`

// programs returns the processes of the box that are not signalbox.
func (b *box) programs() []int {
	return slices.DeleteFunc(b.living(), func(pid int) bool {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err != nil || exe == binary
	})
}

// One up for all three CLIs: a prompt is executed, a conversation continues,
// a cancel leaves no process, a model's error is readable.
func TestRealCLIs(t *testing.T) {
	b := newBox(t)
	models := b.withCLIs()
	b.vars["CLAUDE_CODE_MAX_RETRIES"] = "10" // the CLI's default
	up := b.up()
	c := b.client(up.url)
	for _, kind := range cliKinds {
		t.Run(kind, func(t *testing.T) {
			if !strings.Contains(up.out.text(), "("+filepath.Join(b.bin, kind)+")") {
				t.Errorf("up does not name it:\n%s", up.out.text())
			}
			k := &cliCase{t: t, box: b, c: c, kind: kind, model: models[kind]}
			k.answersAndResumes()
			if kind == "codex" || soak.On() { // starts fastest; internal/agentd tests this with each CLI
				k.failsReadably()
				k.tellsItsTrouble()
				k.isCancelled()
			}
		})
	}
	up.stop()
	b.until("the end of all processes", func() bool { return len(b.living()) == 0 })
}

type cliCase struct {
	*box
	t     *testing.T
	c     *client.Client
	kind  string
	model *model.Server
}

func (k *cliCase) answersAndResumes() {
	k.t.Helper()
	k.model.Use(model.Replies(model.Reply{Text: "The answer is forty-two.", Chunks: 3}))
	got := k.want(0, "submit", "--wait", "--json", "--kind", k.kind, "--session", "talk-"+k.kind, "--", "--help me: what is the answer?")
	task := parse[api.Task](k.t, got.out)
	if task.State != "completed" || task.Agent != k.kind || task.SessionID != "talk-"+k.kind || task.Result == nil {
		k.t.Fatalf("%+v %+v", task, task.Result)
	}
	r := task.Result
	if r.Output != "The answer is forty-two." || r.TokenUsage == nil || r.TokenUsage.Input < model.InputTokens || r.TokenUsage.Output < model.OutputTokens {
		k.t.Errorf("result %+v, tokens %+v", r, r.TokenUsage)
	}
	// The second turn names only the session, and is sent to the agent that has
	// it.
	k.model.Use(model.Replies(model.Reply{Text: "I remember."}))
	got = k.want(0, "submit", "--wait", "--session", "talk-"+k.kind, "and what did I ask before?")
	if strings.TrimSpace(got.out) != "I remember." {
		k.t.Errorf("the second turn printed %q", got.out)
	}
	if !slices.ContainsFunc(k.model.Requests(), func(r model.Request) bool { return strings.Contains(r.Text, "what is the answer?") }) {
		k.t.Error("the second turn does not contain the prompt of the first")
	}
	past, err := k.c.History(k.ctx(), client.HistoryOptions{SessionID: "talk-" + k.kind})
	if err != nil || len(past.Tasks) != 2 || past.Tasks[0].Agent != past.Tasks[1].Agent {
		k.t.Errorf("history of the session: %+v, %v", past, err)
	}
}

func (k *cliCase) failsReadably() {
	k.t.Helper()
	k.model.Use(model.Replies(model.Reply{Status: 400, Message: "the model has no such thing"}))
	got := k.want(10, "submit", "--wait", "--kind", k.kind, "hello")
	if !strings.Contains(got.err, "no such thing") {
		k.t.Errorf("the model's error is not shown: %s", got.err)
	}
}

// tellsItsTrouble uses a model that fails, and then refuses the key. The failure
// is reported everywhere while the run is active; the refusal ends the run. A CLI
// with an overloaded model gives up after ten seconds.
func (k *cliCase) tellsItsTrouble() {
	k.t.Helper()
	if k.kind != "claude" { // package agentd tests the others
		return
	}
	var status atomic.Int64
	status.Store(500)
	k.model.Use(func(model.Request) model.Reply { return model.Reply{Status: int(status.Load()), Message: "no"} })
	id := k.submit(k.c, api.SubmitRequest{Prompt: "hello", Kind: k.kind})
	const says = "the model's API answers 500"
	k.until("its trouble", func() bool {
		task, err := k.c.Task(k.ctx(), id)
		return err == nil && strings.HasPrefix(task.Note, says)
	})
	for _, args := range [][]string{{"why", id}, {"status", id}, {"agents"}, {"status"}} {
		if got := k.want(0, args...); !strings.Contains(got.out, says) {
			k.t.Errorf("%s does not mention it:\n%s%s", args, got.out, got.err)
		}
	}
	status.Store(401)
	k.until("its account is signed out", func() bool {
		task, err := k.c.Task(k.ctx(), id)
		return err == nil && task.State == "parked"
	})
	task, err := k.c.Task(k.ctx(), id)
	if f := task.WaitingFor; err != nil || f == nil || f.Kind != "account" || !strings.Contains(f.Text, "a person must log in") || !strings.Contains(f.Text, "401") {
		k.t.Fatalf("it waits for %+v, %v", task.WaitingFor, err)
	}
	k.want(0, "cancel", id)
	k.want(0, "accounts", "open", task.WaitingFor.Name)
}

func (k *cliCase) isCancelled() {
	k.t.Helper()
	if k.kind == "opencode" && !soak.On() { // internal/agentd tests this, and its next start takes seconds
		return
	}
	k.model.Use(model.Replies(model.Reply{Text: "thinking about it", Hang: true}))
	id := k.submit(k.c, api.SubmitRequest{Prompt: "hello", Kind: k.kind})
	if err := k.model.Await(k.ctx(), 1); err != nil {
		k.t.Fatal(err)
	}
	k.want(0, "cancel", id)
	task := k.end(k.c, id)
	if task.State != "cancelled" || task.Message == "" {
		k.t.Errorf("%s (%s): %s", task.State, task.Reason, task.Message)
	}
	if left := k.programs(); len(left) > 0 {
		k.t.Errorf("cancelled, and the processes %v live on", left)
	}
}

// up is killed while all three CLIs run; the next up adopts the runs, and each
// CLI has run once. make test leaves out opencode, the slowest to start:
// adoption does not depend on the CLI.
func TestRealCLIsOutliveTheDirector(t *testing.T) {
	b := newBox(t)
	models := b.withCLIs()
	if !soak.On() {
		delete(models, "opencode")
		if err := os.Remove(filepath.Join(b.bin, "opencode")); err != nil {
			t.Fatal(err)
		}
	}
	release := make(chan struct{})
	var once sync.Once
	let := func() { once.Do(func() { close(release) }) }
	t.Cleanup(let)
	for kind, m := range models {
		m.Use(func(model.Request) model.Reply {
			<-release
			return model.Reply{Text: "Still here: " + kind + "."}
		})
	}
	addr := freePort(t)
	up := b.up("--addr", addr)
	c := b.client(up.url)
	ids := map[string]string{}
	for kind, m := range models {
		// They run in parallel only in separate folders.
		b.file(filepath.Join("work", kind, "README"), "", 0o600)
		ids[kind] = b.submit(c, api.SubmitRequest{Prompt: "hello", Kind: kind, Project: &api.Project{Path: kind}})
		if err := m.Await(b.ctx(), 1); err != nil {
			t.Fatalf("%s does not ask its model: %v", kind, err)
		}
	}
	up.kill()
	b.up("--addr", addr)
	let()
	for kind, id := range ids {
		if task := b.completed(c, id); task.Result.Output != "Still here: "+kind+"." || task.Attempts != 0 {
			t.Errorf("%s: %+v %+v", kind, task, task.Result)
		}
		b.executedOnce(id)
	}
}
