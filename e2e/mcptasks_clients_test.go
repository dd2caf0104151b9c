package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// jobs are async commands that wait until they may continue. Each is a shell
// script run by a tool, with a folder of its own.
type jobs struct {
	*box
	node, modules string
	director      *process
	folder        string
}

// jobScript writes its PID, waits for its signal file and prints its text.
const jobScript = `#!/bin/sh
read -r line
cd "$1" || exit 1
case "$line" in
*'"fail":true'*) echo "no such track" >&2; exit 3 ;;
*'"name":"'*) name=${line##*'"name":"'}; name=${name%%'"'*} ;;
esac
echo $$ > "$name.tmp" && mv "$name.tmp" "$name.pid"
while [ ! -e "$name.go" ]; do sleep 0.02; done
printf 'did %s' "$name"
`

// jobs starts a director with the tool "job", one at a time, and the tool
// "brief", which has a timeout.
func (b *box) jobs(more object, args ...string) *jobs {
	b.t.Helper()
	j := &jobs{
		box: b, node: newerNode(b.t), folder: filepath.Join(b.root, "jobs"),
		modules: strings.TrimSuffix(fromNPM(b.t, "@modelcontextprotocol/ext-tasks/dist/client/index.js"), "/@modelcontextprotocol/ext-tasks/dist/client/index.js"),
	}
	fromNPM(b.t, "@modelcontextprotocol/client/dist/index.mjs")
	if err := os.MkdirAll(j.folder, 0o700); err != nil {
		b.t.Fatal(err)
	}
	script := b.file(filepath.Join(b.root, "job.sh"), jobScript, 0o700)
	tool := func(more object) object {
		entry := object{"command": script, "args": []string{j.folder}, "env": object{"PATH": "/usr/bin:/bin", "HOME": b.home}, "description": "A job.", "async": true}
		for k, v := range more {
			entry[k] = v
		}
		return entry
	}
	tools := object{"queues": queuesOf(map[string]int{"scarce": 1}), "commandTools": object{"job": tool(nil), "brief": tool(object{"timeoutMs": 300})}}
	for k, v := range more {
		tools[k] = v
	}
	b.withSystemPath()
	b.file(filepath.Join(b.work, "signalbox.yaml"), "commands:\n  max_concurrent: 1\n  task_after: 100ms\n", 0o600)
	j.director = b.director(append(args, "--tools", b.toolFile("tools.json", tools))...)
	return j
}

// began waits until a job runs, and goOn lets it end.
func (j *jobs) began(name string) {
	j.t.Helper()
	j.until(name+" runs", func() bool { return j.there(name + ".pid") })
}

func (j *jobs) goOn(name string) {
	j.t.Helper()
	j.file(filepath.Join(j.folder, name+".go"), "", 0o600)
}

func (j *jobs) there(name string) bool {
	_, err := os.Stat(filepath.Join(j.folder, name))
	return err == nil
}

// client starts a client of tasks that uses the official libraries; without a
// token it uses the owner's.
func (j *jobs) client(token string, args ...string) *process {
	j.t.Helper()
	if token == "" {
		token = j.token()
	}
	line := append([]string{j.testdata("taskcaller.mjs"), j.modules, j.director.url + "/mcp", token}, args...)
	return launchProgram(j.t, j.node, j.work, j.environ(compileCache()), line...)
}

// asked is an action of a client, and the beginning of the line that it then
// prints.
type asked struct {
	want string
	args []string
}

func ask(want string, args ...string) asked { return asked{want, args} }

// says runs one such client, whose start takes half a second of CPU time, for
// all actions to its end, and expects the lines.
func (j *jobs) says(token string, all ...asked) {
	j.t.Helper()
	var args []string
	for _, a := range all {
		args = append(append(args, a.args...), ",")
	}
	p := j.client(token, args...)
	code, rest := p.exits(), "\n"+p.out.text()
	for _, a := range all {
		var found bool
		if _, rest, found = strings.Cut(rest, "\n"+a.want); !found || code != 0 {
			j.t.Errorf("%v: exit code %d, want %q of\n%s%s", a.args, code, a.want, p.out.text(), p.err.text())
		}
	}
}

// idOf is the ID of the task that a client has.
func idOf(p *process) string {
	p.t.Helper()
	return strings.TrimSpace(strings.TrimPrefix(p.prints("id "), "id "))
}

// Async commands are tasks for the official tasks client: it polls them to
// their result, sees that they wait, cancels them, and disconnects from them.
func TestTasksOfTypeScriptClients(t *testing.T) {
	j := newBox(t).jobs(nil)
	first := j.client("", "call", "job", `{"name":"first"}`)
	first.prints("kind task")
	j.began("first")
	second := j.client("", "call", "job", `{"name":"second"}`)
	second.prints("is working queued, position 1")
	third := j.client("", "cancel", "job", `{"name":"third"}`) // it is cancelled while it waits
	third.prints("cancelled")
	j.goOn("first")
	first.prints("completed ok did first")
	second.prints("is working")
	j.began("second")
	j.goOn("second")
	second.prints("completed ok did second")

	fourth := j.client("", "cancel", "job", `{"name":"fourth"}`)
	id := idOf(fourth)
	fourth.prints("cancelled") // even if it was running already
	j.says("", ask("task cancelled cancelled by", "get", id))

	fifth := j.client("", "leave", "job", `{"name":"fifth"}`)
	id = idOf(fifth)
	fifth.prints("closed")
	j.began("fifth") // its client has disconnected, and it continues
	j.goOn("fifth")
	j.says("",
		ask("task completed", "follow", id),
		ask("completed error no such track", "call", "job", `{"fail":true}`),
		ask("failed -32603 Task timed out after 300ms", "call", "brief", `{"name":"brief"}`),
		ask("error -32602", "get", "queue-00000000000000000000000000"))
	for _, p := range []*process{first, second, third, fourth, fifth} {
		if code := p.exits(); code != 0 {
			t.Errorf("exit code %d: %s%s", code, p.out.text(), p.err.text())
		}
	}
	j.director.stop()
	if left := j.living(); len(left) > 0 {
		t.Errorf("processes live on: %v", left)
	}
}

// Only the creator's token sees a task: for another token it does not exist.
func TestATaskIsRefusedToAnotherPrincipal(t *testing.T) {
	b := newBox(t)
	j := b.jobs(nil)
	admin := strings.TrimSpace(b.want(0, "tokens", "create", "admin", "--scope", "admin").out)
	b.vars["SIGNALBOX_TOKEN"] = admin
	token := func(name string) string {
		return strings.TrimSpace(b.want(0, "tokens", "create", name, "--scope", "read", "--scope", "submit", "--scope", "cancel", "--scope", "tool").out)
	}
	mine, another := token("one"), token("two")
	p := j.client(mine, "call", "job", `{"name":"mine"}`)
	id := idOf(p)
	j.began("mine")
	for _, who := range []string{another, admin} {
		j.says(who, ask("error -32602 there is no task", "get", id), ask("error -32602 there is no task", "stop", id))
	}
	j.says(mine, ask("task working", "get", id))
	j.goOn("mine")
	p.prints("completed ok did mine")
}

// What a client was told survives the director: a waiting task is kept with its
// ID, and the running one has failed with a reason that the client can read.
func TestTasksOfClientsSurviveAKill(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	j := b.jobs(nil, "--addr", addr)
	ran := j.client("", "leave", "job", `{"name":"ran"}`)
	ranID := idOf(ran)
	j.began("ran")
	waited := j.client("", "leave", "job", `{"name":"waited"}`)
	waitedID := idOf(waited)
	waited.prints("closed")
	j.director.kill()
	j.director = b.director("--addr", addr, "--tools", filepath.Join(b.root, "tools.json"))
	j.began("waited")
	j.says("", ask("task failed Task interrupted before completion (agent restart)", "get", ranID), ask("task working", "get", waitedID))
	j.goOn("waited")
	j.says("", ask("task completed", "follow", waitedID))
}

// A call that waits in its tool queue becomes a task, with the same position,
// if its client declared tasks. Another client's call keeps waiting and
// reports its position.
func TestACallOverflowsIntoATask(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	j := b.jobs(object{"mcpServers": object{"scarce": d.server("scarce")}})
	b.toolsReady(j.director.url, "scarce")
	first := b.over(j.director.url, modernEra).begin("scarce__work", workArgs{Name: "first", Hold: true}, "")
	d.arrived("first")
	able := j.client("", "call", "scarce__work", `{"name":"able"}`)
	able.prints("kind task")
	able.prints("is working queued, position 1")
	plain := launchProgram(t, j.node, j.work, j.environ(), j.testdata("caller.mjs"), filepath.Join(j.modules, "@modelcontextprotocol/sdk/dist/esm"), j.director.url+"/mcp", j.token(), "plain")
	plain.prints("progress queued, position 2")
	gone := j.client("", "cancel", "scarce__work", `{"name":"gone"}`)
	gone.prints("cancelled")
	b.depth(j.director.url, "scarce", 2)
	d.open("first")
	first.answers("did first")
	able.prints("completed ok did able")
	plain.prints("result did plain")
	b.nothingHeld(j.director.url)
	for _, m := range d.moments() {
		if m.name == "gone" {
			t.Errorf("a call that was cancelled while it waited reached the tool: %+v", m)
		}
	}
	if n := most(t, d.moments()); n != 1 {
		t.Errorf("%d calls at once: %v", n, d.moments())
	}
}

// Clients of either era that did not declare tasks get the ID as text, and
// follow the task with the plain tools.
func TestClientsWithoutTasksFollowAnAsyncTool(t *testing.T) {
	j := newBox(t).jobs(nil)
	for _, era := range []string{legacyEra, modernEra} {
		c := j.over(j.director.url, era)
		said := c.says("job", object{"name": era})
		id, ok := strings.CutPrefix(said, "Task 'job' queued with id ")
		if !ok {
			t.Fatal(said)
		}
		j.began(era)
		j.goOn(era)
		j.until("it is completed", func() bool {
			return strings.Contains(c.says("task_status", object{"task_id": id}), "did "+era)
		})
	}
}

// spoken is a client of signalbox gateway --stdio that writes its own
// messages, because the libraries' calls do not support tasks.
type spoken struct {
	b   *box
	in  io.Writer
	out *bufio.Reader
}

func (b *box) spoken() *spoken {
	b.t.Helper()
	cmd := exec.Command(binary, "gateway", "--stdio")
	said := newTape()
	cmd.Dir, cmd.Env, cmd.Stderr = b.work, b.environ(), said
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil || crashText(said.text()) != "" {
			b.t.Errorf("gateway --stdio: %v: %s", err, said.text())
		}
	})
	return &spoken{b, in, bufio.NewReader(out)}
}

// ask sends a request of the newer protocol and returns the result or the error.
func (s *spoken) ask(method string, params, able object) object {
	s.b.t.Helper()
	params["_meta"] = object{mcp.MetaKeyProtocolVersion: modernEra, mcp.MetaKeyClientCapabilities: able}
	line, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		s.b.t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		s.b.t.Fatal(err)
	}
	for {
		text, err := s.out.ReadBytes('\n')
		var m struct {
			ID            any
			Result, Error object
		}
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		switch {
		case err != nil:
			s.b.t.Fatalf("%v: %s", err, text)
		case m.ID == nil: // a notification
		case m.Error != nil:
			return m.Error
		default:
			return m.Result
		}
	}
}

// A client of signalbox gateway --stdio gets the director's tasks, or, without
// declaring them, the director's text.
func TestTasksThroughABridge(t *testing.T) {
	j := newBox(t).jobs(nil)
	able := object{"extensions": object{"io.modelcontextprotocol/tasks": object{}}}
	s := j.spoken()
	made := s.ask("tools/call", object{"name": "job", "arguments": object{"name": "bridged"}}, able)
	id, _ := made["taskId"].(string)
	if made["resultType"] != "task" || made["status"] != "working" || id == "" {
		t.Fatalf("%v", made)
	}
	j.began("bridged")
	j.says("", ask("task working", "get", id)) // the director has it
	j.goOn("bridged")
	var got object
	j.until("it is completed", func() bool {
		got = s.ask("tasks/get", object{"taskId": id}, able)
		return got["status"] == "completed"
	})
	if text := fmt.Sprint(got["result"]); !strings.Contains(text, "did bridged") {
		t.Error(text)
	}
	if got := s.ask("tasks/get", object{"taskId": "queue-00000000000000000000000000"}, able); got["code"] != float64(-32602) {
		t.Errorf("%v", got)
	}
	if got := s.ask("tasks/get", object{"taskId": id}, object{}); got["code"] != float64(-32021) {
		t.Errorf("%v", got)
	}
	if got := s.ask("tools/call", object{"name": "job", "arguments": object{"fail": true}}, object{}); !strings.Contains(fmt.Sprint(got["content"]), "Task 'job' queued with id queue-") {
		t.Errorf("%v", got)
	}
	made = s.ask("tools/call", object{"name": "job", "arguments": object{"name": "stopped"}}, able)
	j.began("stopped")
	s.ask("tasks/cancel", object{"taskId": made["taskId"]}, able)
	j.until("it is cancelled", func() bool {
		return s.ask("tasks/get", object{"taskId": made["taskId"]}, able)["status"] == "cancelled"
	})
}
