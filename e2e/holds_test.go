package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// bindEnv makes this binary listen on the port 127.0.0.1:PORT for a moment, and fail if
// the port is in use.
const bindEnv = "SIGNALBOX_E2E_BIND"

func init() { roles[bindEnv] = bindPort }

func bindPort(port string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // a run that works with it
	return ln.Close()
}

// Two agents in one folder never run at the same time, and two runs never have the same port,
// across kills of agents and director.
func TestHeldResourcesAreExclusiveOverKills(t *testing.T) {
	b := newBox(t)
	b.withSystemPath()
	ports := []string{port(freePort(t)), port(freePort(t))}
	config := b.file("resources.yaml", fmt.Sprintf("queue: {max_size: 1000}\nresources:\n  port: {values: [%q, %q], env: PORT}\n", ports[0], ports[1]), 0o600)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shop, site := filepath.Join(b.root, "shop"), filepath.Join(b.root, "site")
	for _, dir := range []string{shop, site} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// A kernel lock, which ends with the program that holds it.
	script := b.file("work.sh", `#!/bin/sh
exec 9>in-use
flock -n 9 || { echo "$1" >> `+b.root+`/overlaps; exit 1; }
`+bindEnv+`=$PORT `+self+` || { echo "$1 $PORT" >> `+b.root+`/overlaps; exit 1; }
echo "$1 had $PORT"
`, 0o700)
	director := b.director("--addr", freePort(t), "--config", config)
	c := b.client(director.url)
	names := map[string]string{"a": shop, "b": shop, "c": site}
	agents := map[string]*process{}
	start := func(name string) {
		agents[name] = b.agent(name, director.url, "--workdir", names[name], "--", "/bin/sh", script, "{prompt}")
	}
	for name := range names {
		start(name)
	}
	rounds := soak.Pick(4, 40)
	var ids []string
	for n := range rounds * 4 {
		ids = append(ids, b.submit(c, api.SubmitRequest{Prompt: fmt.Sprint("task ", n), Needs: map[string]int{"port": 1}, OnLost: "requeue"}))
	}
	for n := range rounds {
		b.end(c, ids[n*3])
		switch n % 4 {
		case 0, 1, 2:
			name := string("abc"[n%4])
			agents[name].kill()
			start(name)
		case 3:
			addr := strings.TrimPrefix(director.url, "http://")
			director.kill()
			director = b.director("--addr", addr, "--config", config)
		}
	}
	completed := 0
	for _, id := range ids {
		switch got := b.end(c, id); got.State {
		case "completed":
			completed++
		case "failed": // a killed agent's run is repeated only if it was lost
			if got.Reason != "interrupted" && got.Reason != "lost" {
				t.Errorf("%s: %s (%s)", id, got.Reason, got.Message)
			}
		default:
			t.Errorf("%s is %s", id, got.State)
		}
	}
	if completed < len(ids)-2*rounds {
		t.Errorf("%d of %d tasks have completed over %d kills", completed, len(ids), rounds)
	}
	if overlaps, err := os.ReadFile(filepath.Join(b.root, "overlaps")); err == nil {
		t.Errorf("runs that met another one in their folder or port:\n%s", overlaps)
	}
	if got := b.want(0, "resources").out; !strings.Contains(got, "2 of 2") || strings.Contains(got, "folder") {
		t.Errorf("after the end of all:\n%s", got)
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

func (b *box) state(c *client.Client, id string) string {
	b.t.Helper()
	task, err := c.Task(b.ctx(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return task.State
}

// A task waits at the director for the folder of its agent, and why names the run in it.
func TestWhyNamesTheRunInTheFolder(t *testing.T) {
	b := newBox(t)
	b.withSystemPath()
	shop := filepath.Join(b.root, "shop")
	if err := os.MkdirAll(shop, 0o700); err != nil {
		t.Fatal(err)
	}
	script := b.file("work.sh", "#!/bin/sh\nwhile [ ! -e \"$1\" ]; do sleep 0.05; done\n", 0o700)
	director := b.director("--addr", freePort(t))
	c := b.client(director.url)
	link := filepath.Join(b.root, "link") // another path of the same folder
	if err := os.Symlink(shop, link); err != nil {
		t.Fatal(err)
	}
	b.agent("a", director.url, "--workdir", shop, "--", "/bin/sh", script, "{prompt}")
	b.agent("b", director.url, "--workdir", link, "--", "/bin/sh", script, "{prompt}")
	first := b.submit(c, api.SubmitRequest{Prompt: "go-1", Agent: "a"})
	b.until("the first runs", func() bool { return b.state(c, first) == "working" })
	second := b.submit(c, api.SubmitRequest{Prompt: "go-2", Agent: "b"})
	want := fmt.Sprintf("It waits: a works in %s: %s.", shop, first)
	if got := b.want(0, "why", second).out; !strings.Contains(got, want) {
		t.Errorf("why lacks %q:\n%s", want, got)
	}
	if got := b.want(0, "resources").out; !strings.Contains(got, "folder") || !strings.Contains(got, shop) || !strings.Contains(got, "a "+first) {
		t.Errorf("resources:\n%s", got)
	}
	if got := b.state(c, second); got != "pending" {
		t.Errorf("the second task is %s", got)
	}
	b.file("shop/go-2", "", 0o600)
	b.file("shop/go-1", "", 0o600)
	b.completed(c, first)
	b.completed(c, second)
}
