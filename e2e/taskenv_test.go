package e2e_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The env of a task decides which code runs: a submitter who is not an admin
// may set only the names that the agent's configuration allows.
func TestWhoMaySetTheEnvOfATask(t *testing.T) {
	for _, way := range []string{"push", "pull"} {
		t.Run(way, func(t *testing.T) {
			b := newBox(t)
			director := b.director()
			first := b.client(director.url)
			args := []string{"--task-env", "CALENDAR_*", "--", "/usr/bin/env"}
			if way == "pull" {
				args = append([]string{"--pull"}, args...)
			}
			b.agentAs(first, "a1", director.url, args...)
			run := func(c *client.Client, agent, name string) (said string, err error) {
				got, err := c.Submit(b.ctx(), api.SubmitRequest{Prompt: "p", Agent: agent, Env: map[string]string{name: "hello"}}, client.SubmitOptions{})
				if err != nil {
					return "", err
				}
				task := b.end(c, got.QueueID)
				if task.Result == nil {
					return task.State + ": " + task.Message, nil
				}
				return task.State + ": " + task.Message + task.Result.Output, nil
			}
			takes := func(who string, c *client.Client, name string) {
				t.Helper()
				if said, err := run(c, "a1", name); err != nil || !strings.Contains(said, name+"=hello") {
					t.Errorf("%s of %s: %s, %v", name, who, said, err)
				}
			}
			takes("the owner", first, "OPENSSL_CONF")

			admin, err := first.CreateToken(b.ctx(), api.NewToken{Name: "admin", Scopes: []string{"admin"}})
			if err != nil {
				t.Fatal(err)
			}
			b.vars["SIGNALBOX_TOKEN"] = admin.Secret
			owner := b.client(director.url)
			made, err := owner.CreateToken(b.ctx(), api.NewToken{Name: "ci", Scopes: []string{"submit", "read"}})
			if err != nil {
				t.Fatal(err)
			}
			b.vars["SIGNALBOX_TOKEN"] = made.Secret
			caller := b.client(director.url)
			takes("an admin", owner, "OPENSSL_CONF")
			takes("a caller", caller, "CALENDAR_ID")
			for _, name := range []string{"OPENSSL_CONF", "PYTHONUSERBASE", "MAKEFLAGS", "XCALENDAR_ID", "CALENDAR"} {
				said, err := run(caller, "a1", name)
				switch {
				case way == "push" && (err == nil || !strings.Contains(err.Error(), "agent.task_env") || !strings.Contains(err.Error(), name)):
					t.Errorf("%s of a caller: %s, %v", name, said, err)
				case way == "pull" && (err != nil || !strings.HasPrefix(said, "failed: ") || !strings.Contains(said, "agent.task_env")):
					t.Errorf("%s of a caller: %s, %v", name, said, err)
				}
				if said, err := run(caller, "", name); err != nil || !strings.HasPrefix(said, "failed: ") || !strings.Contains(said, "env."+name) {
					t.Errorf("%s of a caller, for any agent: %s, %v", name, said, err)
				}
			}
		})
	}
}
