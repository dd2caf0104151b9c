package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/api"
)

// stdioGateway is signalbox gateway --stdio with its client.
type stdioGateway struct {
	*caller
	cmd *exec.Cmd
	in  io.Closer
}

func (b *box) overStdio(args ...string) *stdioGateway {
	b.t.Helper()
	cmd := exec.Command(binary, append([]string{"gateway", "--stdio"}, args...)...)
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
		cmd.Process.Kill()
		cmd.Wait()
		if crash := crashText(said.text()); crash != "" {
			b.t.Errorf("gateway --stdio: %s", crash)
		}
	})
	return &stdioGateway{b.newCaller(&mcp.IOTransport{Reader: out, Writer: in}, legacyEra), cmd, in}
}

// A gateway on stdin and stdout with tools of its own ends its servers with
// itself, however it ends.
func TestAStdioGatewayTakesItsServersAlong(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	file := b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": d.server("scarce")}})
	for _, end := range []string{"SIGTERM", "SIGKILL", "end of input"} {
		c := b.overStdio("--tools", file)
		call := c.begin("scarce__mute", workArgs{Name: end[3:]}, "")
		d.saw("begin", end[3:])
		switch end {
		case "SIGTERM":
			c.cmd.Process.Signal(syscall.SIGTERM)
		case "SIGKILL":
			c.cmd.Process.Kill()
		default:
			c.in.Close()
		}
		if res, err := call.ends(); err == nil && !res.IsError {
			t.Errorf("%s: the call answered %s", end, textOf(res))
		}
		b.until("after "+end+" no process is left", func() bool { return len(b.living()) == 0 })
	}
}

// A bridge serves its client across a restart of the director.
func TestABridgeOutlivesItsDirector(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	file := b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": d.server("scarce")}})
	addr := freePort(t)
	director := b.director("--tools", file, "--addr", addr)
	b.toolsReady(director.url, "scarce")
	c := b.overStdio()
	c.says("scarce__work", workArgs{Name: "before"})
	held := c.begin("scarce__work", workArgs{Name: "held", Hold: true}, "")
	d.arrived("held")
	director.kill()
	if res, err := held.ends(); err != nil || !res.IsError || !strings.HasPrefix(textOf(res), "tool_lost: ") {
		t.Errorf("the call under way: %s, %v", textOf(res), err)
	}
	director = b.director("--tools", file, "--addr", addr)
	b.toolsReady(director.url, "scarce")
	b.until("the bridge has found it", func() bool {
		res, err := c.call(b.ctx(), "scarce__work", workArgs{Name: "after"}, "")
		return err == nil && !res.IsError && textOf(res) == "did after"
	})
	b.nothingHeld(director.url)
}

// The limits of a queue are reported at once, or in time, in every way of
// calling.
func TestToolQueuesHaveLimits(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	file := b.toolFile("tools.json", object{
		"queues": object{
			"default": object{"concurrent": 64}, "short": object{"concurrent": 1, "max_waiters": 1}, "brief": object{"concurrent": 1, "max_wait": "250ms"},
		},
		"mcpServers": object{"short": d.server("short"), "brief": d.server("brief")},
	})
	director := b.director("--tools", file)
	b.toolsReady(director.url, "short", "brief")
	c := b.over(director.url, modernEra)
	wants := func(server, code string, status, exit int) {
		t.Helper()
		tool, args := server+"__work", `{"name": "refused"}`
		if res, err := c.call(b.ctx(), tool, workArgs{Name: "refused"}, ""); err != nil || !res.IsError || !strings.HasPrefix(textOf(res), code+": ") {
			t.Errorf("%s by MCP: %s, %v", server, textOf(res), err)
		}
		got, said := b.ask("POST", director.url+"/api/tools/"+tool+"/call", `{"arguments": `+args+`}`)
		if e := parse[api.Error](t, said); got != status || e.Error != code {
			t.Errorf("%s by HTTP: %d %s", server, got, said)
		}
		b.want(exit, "tools", "call", tool, args)
	}
	first := c.begin("short__work", workArgs{Name: "first", Hold: true}, "")
	d.arrived("first")
	second := c.begin("short__work", workArgs{Name: "second"}, "")
	b.depth(director.url, "short", 1)
	wants("short", "tool_queue_full", http.StatusServiceUnavailable, 6)
	d.open("first")
	first.answers("did first")
	second.answers("did second")

	third := c.begin("brief__work", workArgs{Name: "third", Hold: true}, "")
	d.arrived("third")
	wants("brief", "tool_queue_timeout", http.StatusGatewayTimeout, 12)
	d.open("third")
	third.answers("did third")
	b.nothingHeld(director.url)
	for _, m := range d.moments() {
		if m.name == "refused" {
			t.Errorf("a refused call reached the server: %v", m)
		}
	}
}

// A named session keeps its slot from one command to the next, until it has
// been idle for long enough.
func TestANamedSessionKeepsItsSlot(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	file := b.toolFile("tools.json", object{
		"queues":     object{"default": object{"concurrent": 64}, "desk": object{"concurrent": 1, "session": object{"idle": "3s"}}},
		"mcpServers": object{"desk": d.server("desk")},
	})
	director := b.director("--tools", file)
	b.toolsReady(director.url, "desk")
	call := func(session, name string) []string {
		return []string{"tools", "call", "desk__work", `{"name": "` + name + `"}`, "--session", session}
	}
	b.want(0, call("one", "a")...)
	other := b.start(call("two", "b")...)
	other.says("Queued at position 1")
	b.want(0, call("one", "c")...)
	if q := b.toolQueue(director.url, "desk"); q.InUse != 1 || q.Depth != 1 || !q.Holders[0].Leased || !q.Holders[0].Idle {
		t.Errorf("%+v", q)
	}
	if shown := b.want(0, "tools", "queues").out; !strings.Contains(shown, "1/1") || !strings.Contains(shown, "idle") {
		t.Errorf("%s", shown)
	}
	if code := other.exits(); code != 0 || other.out.text() != "did b\n" {
		t.Errorf("exit code %d: %s", code, other.out.text())
	}
	var began []string
	for _, m := range d.moments() {
		if m.what == "begin" {
			began = append(began, m.name)
		}
	}
	if !slices.Equal(began, []string{"a", "c", "b"}) {
		t.Errorf("they began as %v", began)
	}
}

// A server that is not shared is a separate process for each session, which
// ends with the session.
func TestAServerForEachSession(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	server := d.server("default")
	server["shared"] = false
	director := b.director("--tools", b.toolFile("tools.json", object{"mcpServers": object{"own": server}}))
	b.toolsReady(director.url, "own")
	one, two := b.over(director.url, legacyEra), b.over(director.url, legacyEra)
	pid := func(c *caller) int {
		t.Helper()
		n, err := strconv.Atoi(c.says("own__pid", workArgs{Name: "pid"}))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first, second := pid(one), pid(two)
	if first == second || pid(one) != first || pid(two) != second {
		t.Errorf("processes %d and %d", first, second)
	}
	one.Close()
	b.until(fmt.Sprintf("process %d has ended with its session", first), func() bool { return !slices.Contains(b.living(), first) })
	if pid(two) != second {
		t.Error("the other session's server was changed")
	}
	director.stop()
	b.until("no process is left", func() bool { return len(b.living()) == 0 })
}

// Clients that use the TypeScript library, as most programs do, wait in the
// queue, get progress, and leave the queue when they cancel.
func TestTypeScriptClients(t *testing.T) {
	b := newBox(t)
	node := onPath(t, "node")
	library := filepath.Dir(filepath.Dir(fromNPM(t, "@modelcontextprotocol/sdk/dist/esm/client/index.js")))
	script, err := filepath.Abs("testdata/caller.mjs")
	if err != nil {
		t.Fatal(err)
	}
	d := b.doors()
	director := b.director("--tools", b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": d.server("scarce")}}))
	b.toolsReady(director.url, "scarce")
	first := b.over(director.url, modernEra).begin("scarce__work", workArgs{Name: "first", Hold: true}, "")
	d.arrived("first")
	start := func(args ...string) *process {
		return launchProgram(t, node, b.work, b.environ(), append([]string{script, library, director.url + "/mcp", b.token()}, args...)...)
	}
	patient := start("patient")
	patient.prints(" scarce__die scarce__huge scarce__mute scarce__pid scarce__refuse scarce__work")
	patient.prints("progress queued, position 1")
	hasty := start("hasty", "abort")
	hasty.prints("progress queued, position 2")
	hasty.prints("error ")
	hasty.prints("closed")
	b.depth(director.url, "scarce", 1)
	d.open("first")
	first.answers("did first")
	patient.prints("result did patient")
	patient.prints("closed")
	for _, p := range []*process{patient, hasty} {
		if code := p.exits(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	b.nothingHeld(director.url)
	for _, m := range d.moments() {
		if m.name == "hasty" {
			t.Errorf("a call that was cancelled while it waited reached the server: %v", m)
		}
	}
}
