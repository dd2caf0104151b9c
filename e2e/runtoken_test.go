package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// tokenScript reveals the token of its run, as a run whose prompt asks for it
// would, and ends when it may.
const tokenScript = `#!/bin/sh
echo "$SIGNALBOX_TOKEN" > "$1/token"
echo "this is $SIGNALBOX_TOKEN"; echo "and $SIGNALBOX_TOKEN" >&2
read -r line < "$1/end"
`

// The token in a run's environment belongs to the execution: it can create
// nothing that outlives the run, its calls are always part of the execution,
// it expires with the run, and it is not in the log.
func TestARunsTokenIsTheRunsAlone(t *testing.T) {
	for _, way := range []string{"push", "pull"} {
		t.Run(way, func(t *testing.T) {
			b := newBox(t)
			director := b.director()
			c := b.client(director.url)
			script := b.file("token.sh", tokenScript, 0o700)
			args := []string{"--workdir", b.work, "--slots", "2", "--", "/bin/sh", script, "{prompt}"}
			if way == "pull" {
				args = append([]string{"--pull"}, args...)
			}
			_, agents := b.agentAs(c, "a1", director.url, args...)
			b.agent("a2", director.url)
			b.untilState(c, "a2", "idle")
			made, err := c.CreateSchedule(b.ctx(), api.NewSchedule{Name: "mine", Schedule: "0 3 * * *", Prompt: "p", Agent: "a2"})
			if err != nil {
				t.Fatal(err)
			}

			begin := func(name string) (id, token string) {
				folder := filepath.Join(b.root, name)
				if err := os.Mkdir(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Mkfifo(filepath.Join(folder, "end"), 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := c.Submit(b.ctx(), api.SubmitRequest{Prompt: folder, Agent: "a1"}, client.SubmitOptions{})
				if err != nil {
					t.Fatal(err)
				}
				b.until("the run gave its token away", func() bool {
					text, err := os.ReadFile(filepath.Join(folder, "token"))
					token = strings.TrimSpace(string(text))
					return err == nil && strings.HasSuffix(string(text), "\n")
				})
				return got.QueueID, token
			}
			id, token := begin("first")
			other, second := begin("second")
			if !strings.HasPrefix(token, "sbxr_"+id) || token == second || token == agents {
				t.Fatalf("the runs have the tokens %q and %q, the agent %q", token, second, agents)
			}
			as := func(method, path, body string, headers ...string) (int, string) {
				return b.ask(method, director.url+path, body, append(headers, "Authorization", "Bearer "+token)...)
			}
			job := `{"name":"evilpersist","schedule":"* * * * *","prompt":"I persist","agent":"a2"}`
			for _, refused := range [][3]string{
				{"POST", "/api/schedules", job}, {"PUT", "/api/schedules/" + made.ID, job}, {"DELETE", "/api/schedules/" + made.ID, ""},
				{"POST", "/api/schedules/" + made.ID + "/trigger", ""}, {"POST", "/api/schedules/" + made.ID + "/disable", ""}, {"POST", "/api/schedules/" + made.ID + "/enable", ""},
				{"POST", "/api/tokens", `{"name":"more","agent":"a1"}`}, {"PUT", "/api/users/evil", `{"password":"long enough for anyone"}`},
				{"POST", "/api/agents", `{"name":"a1","kind":"command","url":"http://127.0.0.1:1"}`}, {"POST", "/api/agents/a1/heartbeat", `{}`},
				{"POST", "/api/agents/a1/claim", `{"instance":"i","slots":1}`}, {"POST", "/api/queue/pause", `{}`},
			} {
				if code, said := as(refused[0], refused[1], refused[2]); code != http.StatusForbidden {
					t.Errorf("%s %s: %d %s", refused[0], refused[1], code, said)
				}
			}
			if code, said := as("POST", "/api/queue/task", taskBody, "X-Signalbox-Execution", other); code != http.StatusForbidden {
				t.Errorf("it called as another execution: %d %s", code, said)
			}
			submit := func(headers ...string) {
				t.Helper()
				code, said := as("POST", "/api/queue/task", `{"prompt": "sleep 1ms", "agent": "a2"}`, headers...)
				if code != http.StatusCreated {
					t.Fatalf("submit: %d %s", code, said)
				}
				task, err := c.Task(b.ctx(), parse[api.SubmitResponse](t, said).QueueID)
				if err != nil || task.ParentID != id || task.Depth != 1 {
					t.Errorf("the call of %s: parent %q, depth %d, %v", id, task.ParentID, task.Depth, err)
				}
			}
			submit()
			submit("X-Signalbox-Execution", id)
			for _, forged := range []string{token + "A", token[:len(token)-1], strings.Replace(second, other, id, 1), "sbxr_", "sbxr__", "sbxr_" + id + ".1_"} {
				if code, _ := b.ask("GET", director.url+"/api/me", "", "Authorization", "Bearer "+forged); code != http.StatusUnauthorized {
					t.Errorf("%s: %d", forged, code)
				}
			}

			// A client that asks for a proof of the token gets it, and after the run is told that the token
			// has expired.
			proving, err := client.New(director.url, client.Options{Token: token})
			if err != nil {
				t.Fatal(err)
			}
			if me, err := proving.Me(b.ctx()); err != nil || me.ID != "a1" {
				t.Errorf("who I am: %+v, %v", me, err)
			}

			if err := os.WriteFile(filepath.Join(b.root, "first", "end"), []byte("\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			task := b.end(c, id)
			if task.State != "completed" {
				t.Errorf("%s: %s %s", id, task.State, task.Message)
			}
			for _, ask := range [][2]string{{"POST", "/api/queue/task"}, {"POST", "/api/agents/a2/chat"}, {"POST", "/mcp"}, {"GET", "/api/me"}} {
				if code, said := as(ask[0], ask[1], `{"prompt":"p","message":"m"}`); code != http.StatusUnauthorized {
					t.Errorf("after its end: %s %s: %d %s", ask[0], ask[1], code, said)
				}
			}
			if _, err := proving.Me(b.ctx()); client.Code(err) != "unauthorized" || !strings.Contains(err.Error(), "has ended") {
				t.Errorf("after its end: %v", err)
			}
			for _, path := range []string{"/api/queue/" + id, "/api/queue/" + id + "/output"} {
				code, said := b.ask("GET", director.url+path, "")
				if code != http.StatusOK || strings.Contains(said, token) || !strings.Contains(said, "this is ***") {
					t.Errorf("%s: %d %s", path, code, said)
				}
			}
			found := b.grep(filepath.Join(b.root, "agents-a1"), token)
			if len(found) > 0 {
				t.Errorf("the token is in %v", found)
			}
			_ = os.WriteFile(filepath.Join(b.root, "second", "end"), []byte("\n"), 0o600)
			b.end(c, other)
		})
	}
}

// grep lists the files below a folder that contain a text.
func (b *box) grep(folder, text string) (found []string) {
	b.t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		have, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(have), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(fmt.Errorf("look for a text: %w", err))
	}
	return found
}
