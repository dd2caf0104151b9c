package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// What a tool marks as secret, and values from variables, reach only the
// program: no file of the data folder, no answer and no log has them, even if
// the director is killed while the task waits or runs.
func TestSecretsOfCommandsAreNowhere(t *testing.T) {
	const password, token = "hunter-93f1ce4b", "tok-5d21e08a77"
	tool := object{"command": "reveal", "secrets": []string{"password"}, "env": object{"TOKEN": "${REVEAL_TOKEN}"}}
	schema := object{"type": "object", "properties": object{"password": object{"type": "string", "writeOnly": true}, "how": object{"type": "string"}}}
	marked := object{"command": "reveal", "inputSchema": schema, "env": object{"TOKEN": "${REVEAL_TOKEN}"}, "restart": "requeue"}
	b := newCommandBox(t, autoLimits, object{"named": tool, "marked": marked}, "max_concurrent: 2")
	b.vars["REVEAL_TOKEN"] = token
	b.start()
	nowhere := func(when string) {
		t.Helper()
		for _, secret := range []string{password, token} {
			if found := holding(t, b.data, secret); len(found) > 0 {
				t.Errorf("%s: %s is in %v", when, secret, found)
			}
			if said := b.d.out.text() + b.d.err.text(); strings.Contains(said, secret) {
				t.Errorf("%s: the director says %s", when, secret)
			}
		}
	}
	arguments := func(how string) string { return `{"password": "` + password + `", "how": "` + how + `"}` }
	ids := map[string]string{} // task → status
	for _, tool := range []string{"named", "marked"} {
		ids[b.call(tool, arguments("work"))] = "completed"
		ids[b.call(tool, arguments("fail"))] = "failed"
	}
	var answers strings.Builder
	for id, status := range ids {
		task := b.ended(id)
		if task.Status != status {
			t.Errorf("%+v", task)
		}
		if text := said(task) + failure(task); !strings.Contains(text, `"***"`) || !strings.Contains(text, "token ***") {
			t.Errorf("its answer is not masked: %q", text)
		}
	}
	running := b.call("marked", arguments("wait"))
	b.call("named", arguments("wait"))
	waiting := b.call("marked", arguments("work"))
	b.until("two run", func() bool { return strings.Count(b.revealed(), "wait") == 2 })
	nowhere("while two run and one waits")
	b.d.signal(syscall.SIGKILL)
	b.d.exits()
	nowhere("after kill -9")
	b.start()
	b.until("one runs again", func() bool { return strings.Count(b.revealed(), "wait") == 3 })
	if task := b.ended(waiting); task.Status != "completed" {
		t.Errorf("%+v", task)
	}
	if _, err := b.c.CancelToolTask(b.ctx(), running); err != nil {
		t.Fatal(err)
	}
	b.ended(running)
	for id := range ids {
		for _, path := range []string{"/getTaskStatus?taskId=", "/api/tools/tasks/", "/api/queue/"} {
			answers.WriteString(b.get(path + id))
		}
		answers.WriteString(b.get("/api/queue/" + id + "/output"))
		answers.WriteString(b.cli("logs", id, "--director", b.d.url).out)
		answers.WriteString(b.get("/api/queue/" + id + "/why"))
	}
	for _, path := range []string{"/api/tools/tasks", "/api/tools", "/api/history", "/api/activities", "/api/audit", "/metrics", "/api/doctor"} {
		answers.WriteString(b.get(path))
	}
	if got := b.revealed(); strings.Count(got, password) != strings.Count(got, "\n") || strings.Count(got, token) != strings.Count(got, "\n") || strings.Count(got, "\n") != 8 {
		t.Errorf("the programs got other values than the secrets:\n%s", got)
	}
	for _, secret := range []string{password, token} {
		if text := answers.String(); strings.Contains(text, secret) {
			at := strings.Index(text, secret)
			t.Errorf("an answer has %s: %s", secret, text[max(0, at-200):at+50])
		}
	}
	if !strings.Contains(answers.String(), `***`) {
		t.Error("no answer hides anything")
	}
	_, err := b.c.Retry(b.ctx(), waiting, api.RetryRequest{}, client.SubmitOptions{})
	if err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("a task whose secrets are erased was retried: %v", err)
	}
	b.d.stop()
	nowhere("after the end")
}

func (b *commandBox) revealed() string {
	found := holding(b.t, b.dir, "")
	for _, path := range found {
		if strings.HasSuffix(path, "/revealed") {
			return b.read(path)
		}
	}
	return ""
}

// get returns an answer of the director, whatever its status.
func (b *commandBox) get(path string) string {
	b.t.Helper()
	_, text := b.ask(http.MethodGet, path, "", nil)
	return text
}

// ask sends a request as curl does.
func (b *commandBox) ask(method, path, body string, header http.Header) (*http.Response, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.ctx(), method, b.d.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, string(text)
}

// A secret that is not a string is kept and passed on as well.
func TestSecretsOfAnyKind(t *testing.T) {
	b := newCommandBox(t, autoLimits, object{"named": object{"command": "reveal", "secrets": []string{"key", "list"}}})
	b.start()
	input := `{"key":{"private":"pk-77120ab3","n":12345678},"list":["li-11aa22bb",true],"open":"shown"}`
	task := b.ended(b.call("named", input))
	if text := said(task); !strings.Contains(text, "shown") || strings.Contains(text, "pk-77120ab3") || strings.Contains(text, "li-11aa22bb") {
		t.Errorf("%s", text)
	}
	var line struct{ Input json.RawMessage }
	if err := json.NewDecoder(strings.NewReader(b.revealed())).Decode(&line); err != nil {
		t.Fatal(err)
	}
	if got, want := parse[object](t, string(line.Input)), parse[object](t, input); len(got) != len(want) || !strings.Contains(string(line.Input), `"n":12345678`) {
		t.Errorf("it was given %s", line.Input)
	}
	for _, secret := range []string{"pk-77120ab3", "li-11aa22bb"} {
		if found := holding(t, b.data, secret); len(found) > 0 {
			t.Errorf("%s is in %v", secret, found)
		}
	}
}
