package e2e_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// spyScript reads what a run can read of the processes of its user: of those
// that its prompt names, of all whose environment is readable, and of itself.
const spyScript = `#!/bin/sh
for p in $1; do
  if (: < /proc/$p/mem) 2> /dev/null; then echo "memory of $p"; fi
  if (: < /proc/$p/maps) 2> /dev/null; then echo "maps of $p"; fi
  if /bin/ls /proc/$p/fd > /dev/null 2>&1; then echo "files of $p"; fi
done
echo "started by $PPID"
for e in /proc/[0-9]*/environ; do /usr/bin/tr '\0' '\n' < $e 2> /dev/null; done
/usr/bin/env
echo "looked everywhere"
`

// runAs is an unprivileged user of this machine that owns nothing else.
const runAs = 54321

// unprivileged runs the processes of the box without privileges: root can read
// everything, so a test with root proves nothing.
func (b *box) unprivileged() {
	b.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	b.user = &syscall.Credential{Uid: runAs, Gid: runAs, NoSetGroups: true}
	err := filepath.WalkDir(filepath.Dir(b.root), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, runAs, runAs)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// secretVars are secrets with which a director and an agent are started, unique
// to this test: environments of other tests' processes may be visible while
// those start.
func secretVars() map[string]string {
	return map[string]string{
		"SIGNALBOX_TOKEN": "static-" + rand.Text(), "SIGNALBOX_SECRET_KEY": hex.EncodeToString([]byte(rand.Text() + "0000000")[:32]),
		"SIGNALBOX_AGENT_TOKEN": "agent-" + rand.Text(), "SIGNALBOX_SCHEDULER_TOKEN": "scheduler-" + rand.Text(),
	}
}

// A run can read no secret of the director and the agent in their environment
// or memory, although it has the same user. (It can read the files of that
// user.)
func TestAttackARunReadsTheProcessesOfItsUser(t *testing.T) {
	for _, way := range []string{"push", "pull"} {
		t.Run(way, func(t *testing.T) {
			b := newBox(t)
			script := b.file("spy.sh", spyScript, 0o755)
			b.unprivileged()
			secrets := secretVars()
			for name, value := range secrets {
				b.vars[name] = value
			}
			director := b.director()
			c := b.client(director.url)
			made, err := c.CreateToken(b.ctx(), api.NewToken{Name: "of-a1", Agent: "a1"})
			if err != nil {
				t.Fatal(err)
			}
			b.vars["SIGNALBOX_TOKEN"], secrets["token at the director"] = made.Secret, made.Secret
			args := []string{"--", "/bin/sh", script, "{prompt}"}
			if way == "pull" {
				args = append([]string{"--pull"}, args...)
			}
			agent := b.agent("a1", director.url, args...)
			b.untilState(c, "a1", "idle")
			got, err := c.Submit(b.ctx(), api.SubmitRequest{Prompt: fmt.Sprint(director.pid(), " ", agent.pid()), Agent: "a1"}, client.SubmitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			task := b.end(c, got.QueueID)
			if task.State != "completed" || task.Result == nil || !strings.Contains(task.Result.Output, "looked everywhere") {
				t.Fatalf("%+v %+v", task, task.Result)
			}
			said := task.Result.Output
			for _, found := range []string{"memory of ", "maps of ", "files of "} {
				if strings.Contains(said, found) {
					t.Errorf("it has the %s", said[strings.Index(said, found):][:40])
				}
			}
			for name, secret := range secrets {
				if strings.Contains(said, secret) {
					t.Errorf("it has %s", name)
				}
			}
			if !strings.Contains(said, "SIGNALBOX_AGENT=a1") { // its own environment, which proves that it looked
				t.Errorf("it printed %s", said)
			}
		})
	}
}

// Agents of up have no secret in their initial environment, which root, and
// on some systems everybody, can read.
func TestAgentsOfUpAreStartedWithoutSecrets(t *testing.T) {
	b := newBox(t)
	b.unprivileged()
	secrets := secretVars()
	for name, value := range secrets {
		b.vars[name] = value
	}
	b.vars["SIGNALBOX_LLM_API_KEY"] = "model-" + rand.Text()
	secrets["key"] = b.vars["SIGNALBOX_LLM_API_KEY"]
	up := b.up()
	file := parse[struct {
		PID   int
		Token string
	}](t, b.read(b.data+"/agents/demo/agent.json"))
	if file.Token == secrets["SIGNALBOX_AGENT_TOKEN"] || len(file.Token) < 16 {
		t.Errorf("the agent has the token %q", file.Token)
	}
	secrets["the agent's token"] = file.Token
	for _, pid := range []int{up.pid(), file.PID} {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if os.Geteuid() != 0 {
			if !os.IsPermission(err) {
				t.Errorf("the environment of %d is read: %v", pid, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, secret := range secrets {
			if pid == file.PID && strings.Contains(string(env), secret) {
				t.Errorf("its environment contains %s", name)
			}
		}
		if pid == file.PID && strings.Contains(string(env), "sbxa_") {
			t.Error("its environment contains its token for the director")
		}
	}
	c := b.client(up.url)
	got, err := c.Submit(b.ctx(), api.SubmitRequest{Prompt: "sleep 1ms"}, client.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if task := b.end(c, got.QueueID); task.State != "completed" {
		t.Errorf("it does not work: %+v", task)
	}
}
