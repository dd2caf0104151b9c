package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Checks of a repository count once its user has trusted them, and a run cannot change the
// checks that it must pass. A caller who is not an admin cannot bring checks.
func TestChecksOfTheRepositoryAndOfCallers(t *testing.T) {
	for _, way := range []string{"push", "pull"} {
		t.Run(way, func(t *testing.T) {
			b := newBox(t)
			b.withSystemPath()
			repo := filepath.Join(b.root, "repo")
			if err := os.MkdirAll(repo, 0o700); err != nil {
				t.Fatal(err)
			}
			b.git(repo, "", "init", "-q", "-b", "main")
			b.file("repo/.signalbox.yaml", "checks:\n  - {name: word, run: \"cat word; test $(cat word) = right\"}\n", 0o600)
			b.git(repo, "", "add", ".")
			b.git(repo, "", "commit", "-qm", "first")
			script := b.file("work.sh", "#!/bin/sh\necho \"$1\" >word\necho 'checks: []' >>.signalbox.yaml\n", 0o700)
			director := b.director()
			first := b.client(director.url)
			admin, err := first.CreateToken(b.ctx(), api.NewToken{Name: "admin", Scopes: []string{"admin"}})
			if err != nil {
				t.Fatal(err)
			}
			made, err := first.CreateToken(b.ctx(), api.NewToken{Name: "ci", Scopes: []string{"submit", "read"}})
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"--workdir", repo, "--workspace", "worktree", "--", "/bin/sh", script, "{prompt}"}
			if way == "pull" {
				args = append([]string{"--pull"}, args...)
			}
			b.agentAs(first, "coder", director.url, args...)
			b.vars["SIGNALBOX_TOKEN"] = admin.Secret
			owner := b.client(director.url)

			file := filepath.Join(repo, ".signalbox.yaml")
			task := b.completed(owner, b.submit(owner, prompt("wrong")))
			if c := task.Result.Checks; c == nil || c.State != "unavailable" || !strings.Contains(c.Message, "signalbox trust "+file) {
				t.Fatalf("an untrusted file: %+v", c)
			}
			if said := b.want(0, "status", task.QueueID).out; !strings.Contains(said, "unchecked: ") {
				t.Errorf("%s", said)
			}
			if said := b.want(0, "trust", file).out; !strings.Contains(said, "sets checks") {
				t.Errorf("%s", said)
			}
			task = b.end(owner, b.submit(owner, prompt("wrong")))
			if c := task.Result.Checks; task.State != "failed" || task.Reason != "checks" || c == nil || c.State != "failed" || c.Results[0].Output != "wrong\n" || !strings.Contains(task.Message, "word (exit status 1)") {
				t.Fatalf("%s %s %q %+v", task.State, task.Reason, task.Message, c)
			}
			if task.Result.Changes == nil || task.Result.Changes.Commits != 1 {
				t.Errorf("the commit of the failed run is not kept: %+v", task.Result.Changes)
			}
			task = b.completed(owner, b.submit(owner, prompt("right")))
			if said := b.want(0, "status", task.QueueID).out; !strings.Contains(said, "passed (word) after 1 round") {
				t.Errorf("%s", said)
			}

			b.vars["SIGNALBOX_TOKEN"] = made.Secret
			caller := b.client(director.url)
			own := api.SubmitRequest{Prompt: "wrong", Checks: []api.TaskCheck{{Name: "own", Run: "touch " + filepath.Join(b.root, "pwned")}}}
			got, err := caller.Submit(b.ctx(), own, client.SubmitOptions{})
			if err != nil {
				t.Fatal(err) // no agent is named: the agent itself refuses
			}
			if task := b.end(caller, got.QueueID); task.State != "failed" || !strings.Contains(task.Message, "agent.task_checks") {
				t.Errorf("of a caller: %s %s", task.State, task.Message)
			}
			if _, err := os.Stat(filepath.Join(b.root, "pwned")); err == nil {
				t.Error("the check of a caller ran")
			}
			named := own
			named.Agent = "coder"
			switch got, err := caller.Submit(b.ctx(), named, client.SubmitOptions{}); {
			case way == "push" && (err == nil || !strings.Contains(err.Error(), "agent.task_checks")):
				t.Errorf("of a caller, for a named agent: %v", err)
			case way == "pull" && err != nil:
				t.Fatal(err)
			case way == "pull":
				if task := b.end(caller, got.QueueID); !strings.Contains(task.Message, "agent.task_checks") {
					t.Errorf("of a caller, for a named agent: %s %s", task.State, task.Message)
				}
			}
			own.Checks[0].Run = "grep wrong word"
			if task := b.completed(owner, b.submit(owner, own)); task.Result.Checks == nil || task.Result.Checks.State != "passed" {
				t.Errorf("of an admin: %+v", task.Result.Checks)
			}
		})
	}
}
