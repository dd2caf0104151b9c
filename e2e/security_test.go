package e2e_test

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// ask makes a request as the owner of the box and returns the status and
// body.
func (b *box) ask(method, url, body string, headers ...string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.ctx(), method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(said)
}

const taskBody = `{"prompt": "sleep 1ms"}`

// Requests that a web page, or a name that resolves to this host, can make a
// browser send reach neither the queue nor up's agents.
func TestAPageCannotSubmit(t *testing.T) {
	b := newBox(t)
	up := b.up()
	agent := parse[struct{ URL string }](t, b.read(b.data+"/agents/demo/agent.json"))
	for name, headers := range map[string][]string{
		"a name that points here": {"Host", "attacker.example"},
		"a page of another site":  {"Origin", "https://attacker.example", "Sec-Fetch-Site", "cross-site"},
		"an old browser":          {"Origin", "https://attacker.example"},
	} {
		if code, said := b.ask("POST", up.url+"/api/queue/task", taskBody, headers...); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, said)
		}
		if code, said := b.ask("POST", agent.URL+"/task", taskBody, headers...); code != http.StatusForbidden && code != http.StatusUnauthorized {
			t.Errorf("%s, to the agent: %d %s", name, code, said)
		}
	}
	if code, said := b.ask("GET", up.url+"/api/queue", "", "Host", "attacker.example"); code != http.StatusForbidden {
		t.Errorf("a read by another name: %d %s", code, said)
	}
	if code, said := b.ask("POST", up.url+"/api/queue/task", taskBody, "Content-Type", "text/plain"); code != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d %s", code, said)
	}
	if code := b.knock("POST", agent.URL+"/task", taskBody); code != http.StatusUnauthorized {
		t.Errorf("the child agent takes tasks from anyone: %d", code)
	}
	if queue := parse[api.Queue](t, b.want(0, "status", "--json").out); queue.Depth != 0 || queue.DispatchedCount != 0 {
		t.Errorf("something got in: %+v", queue)
	}
	if past := parse[api.History](t, b.want(0, "history", "--json").out); len(past.Tasks) != 0 {
		t.Errorf("something got in: %+v", past)
	}
}

// An agent is an address that the director calls: only some callers may add
// one, and only some addresses are allowed.
func TestNotEveryAgentIsLetIn(t *testing.T) {
	b := newBox(t)
	director := b.director("--open") // no token vouches for agents
	agent := func(url string) string { return `{"name": "intruder", "kind": "demo", "url": "` + url + `"}` }
	for name, c := range map[string]struct {
		url     string
		headers []string
		code    int
	}{
		"from behind a proxy":        {"http://127.0.0.1:9000", []string{"X-Forwarded-For", "203.0.113.9"}, http.StatusForbidden},
		"from a page":                {"http://127.0.0.1:9000", []string{"Origin", "https://attacker.example"}, http.StatusForbidden},
		"the cloud's metadata":       {"http://169.254.169.254", nil, http.StatusBadRequest},
		"a file":                     {"file:///etc/passwd", nil, http.StatusBadRequest},
		"credentials in the address": {"http://user:secret@127.0.0.1:9000", nil, http.StatusBadRequest},
	} {
		if code, said := b.ask("POST", director.url+"/api/agents", agent(c.url), c.headers...); code != c.code {
			t.Errorf("%s: %d, want %d: %s", name, code, c.code, said)
		}
	}
	if got := parse[api.Agents](t, b.want(0, "agents", "--json").out); len(got.Agents) != 0 {
		t.Errorf("agents: %+v", got.Agents)
	}
}

func TestATokenIsRequired(t *testing.T) {
	const token = "a-token-of-some-length-0123456789"
	b := newBox(t)
	b.vars["SIGNALBOX_TOKEN"] = token
	director := b.director()
	delete(b.vars, "SIGNALBOX_TOKEN")
	for _, headers := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
		if code, said := b.ask("POST", director.url+"/api/queue/task", taskBody, headers...); code != http.StatusUnauthorized {
			t.Errorf("with %v: %d %s", headers, code, said)
		}
	}
	if code, _ := b.ask("GET", director.url+"/healthz", ""); code != http.StatusOK {
		t.Errorf("healthz: %d", code)
	}
	got := b.want(4, "status", "--director", director.url)
	if !strings.Contains(got.err, "SIGNALBOX_TOKEN") {
		t.Errorf("the error does not say what to do: %s", got.err)
	}
	b.want(0, "status", "--token", token)
	// An agent without a token is refused; one with a token is accepted.
	stranger := b.serve(b.agentLine("stranger", director.url, nil)...)
	stranger.says("director not reached")
	b.vars["SIGNALBOX_TOKEN"] = token
	b.agent("friend", director.url)
	b.want(0, "submit", "--wait", "--agent", "friend", "sleep 1ms")
	b.want(3, "submit", "--agent", "stranger", "sleep 1ms")
}

// Secrets pass through and are stored nowhere: not in logs, in the database
// after the task has ended, in events, metrics, answers, or where ps shows
// them.
func TestSecretsStayNowhere(t *testing.T) {
	const env, token = "canary-of-an-env-value-7391", "canary-of-the-token-000000000000045678"
	b := newBox(t)
	b.vars["SIGNALBOX_TOKEN"] = token
	director := b.director("--log-level", "debug", "--addr", freePort(t))
	gate := b.newGate()
	script := b.file("secret.sh", "#!/bin/sh\nread line <"+gate.fifo+"\necho \"got ${#CANARY} characters\"\n", 0o700)
	agent := b.agent("worker", director.url, "--log-level", "debug", "--", "/bin/sh", script)
	c := b.client(director.url)
	req := api.SubmitRequest{Prompt: "use it", Env: map[string]string{"CANARY": env}}
	id := b.submit(c, req)
	second := b.submit(c, req) // waits with its secret: encrypted at rest
	gate.arrived()
	for _, pid := range b.living() {
		argv, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		for _, canary := range []string{env, token} {
			if bytes.Contains(argv, []byte(canary)) {
				t.Errorf("ps shows a secret: %q", argv)
			}
		}
	}
	b.nowhere("while a task waits", env, token)
	gate.open()
	if task := b.completed(c, id); task.Result.Output != "got "+strconv.Itoa(len(env))+" characters\n" {
		t.Errorf("the program got %q", task.Result.Output)
	}
	gate.arrived()
	gate.open()
	b.completed(c, second)

	metrics, err := c.Metrics(b.ctx())
	if err != nil {
		t.Fatal(err)
	}
	answers := []string{metrics, director.err.text(), director.out.text(), agent.err.text(), agent.out.text()}
	for _, args := range [][]string{{"status", id}, {"history"}, {"logs", id}, {"agents"}, {"status"}} {
		answers = append(answers, b.want(0, append(args, "--json")...).out)
	}
	ctx := b.ctx()
	for event, err := range c.Events(ctx, client.EventsOptions{After: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, event.Kind+event.Message+event.By)
		if event.Kind == "finish" && event.QueueID == second {
			break
		}
	}
	for _, said := range answers {
		if strings.Contains(said, env) || strings.Contains(said, token) {
			t.Errorf("a secret in %q", said)
		}
	}
	director.stop()
	agent.stop()
	b.nowhere("after the end", env, token)
}

// nowhere searches for secrets in every file of the box.
func (b *box) nowhere(when string, secrets ...string) {
	b.t.Helper()
	files := 0
	err := filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil // it was removed meanwhile
		}
		files++
		for _, secret := range secrets {
			if bytes.Contains(data, []byte(secret)) {
				b.t.Errorf("%s: %s holds a secret", when, path)
			}
		}
		return err
	})
	if err != nil {
		b.t.Error(err)
	}
	if files < 3 {
		b.t.Errorf("only %d files were looked at", files)
	}
}
