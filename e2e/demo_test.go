package e2e_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// withDemo gives the box its own temporary folder, and returns the folder
// that a demo creates there.
func (b *box) withDemo() string {
	b.t.Helper()
	tmp := filepath.Join(b.root, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.vars["TMPDIR"] = tmp
	return filepath.Join(tmp, "signalbox-demo-"+strconv.Itoa(os.Getuid()))
}

// demo starts a demo that submits nothing after its opening.
func (b *box) demo() *process {
	b.t.Helper()
	p := b.serve("demo", "--pace", "1h")
	p.prints("From another terminal: " + binary + " top · ") // signalbox is not on PATH here
	return p
}

// waiter waits until a call waits in a tool queue.
func (b *box) waiter(c *client.Client, queue string) (w api.ToolWaiter) {
	b.t.Helper()
	b.until("a call waits for "+queue, func() bool {
		queues, err := c.ToolQueues(b.ctx())
		if err != nil {
			b.t.Fatal(err)
		}
		for _, q := range queues {
			if q.Name == queue && len(q.Waiters) > 0 {
				w = q.Waiters[0]
				return true
			}
		}
		return false
	})
	return w
}

// unended are the tasks that wait or run.
func (b *box) unended(c *client.Client) (ids []string, running []string) {
	b.t.Helper()
	waiting, err := c.Queue(b.ctx(), client.QueueOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, t := range waiting.Tasks {
		ids = append(ids, t.QueueID)
	}
	agents, err := c.Agents(b.ctx())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range agents {
		for _, r := range a.Running {
			ids, running = append(ids, r.QueueID), append(running, r.QueueID)
		}
	}
	return ids, running
}

var recovered = regexp.MustCompile(`Recovered: (\d+) waiting · (\d+) still running`)

// The demo: its address answers, and one task visibly waits for capacity with
// the reason. After a kill and a restart it reports what it recovered, and
// nothing is lost. A clean end leaves no process and no folder.
func TestDemo(t *testing.T) {
	b := newBox(t)
	folder := b.withDemo()
	p := b.demo()
	c := b.client(p.url)
	page, err := http.Get(p.url)
	if err != nil || page.StatusCode != http.StatusOK {
		t.Fatalf("the dashboard: %v, %v", page, err)
	}
	page.Body.Close()

	w := b.waiter(c, "github")
	if w.Agent != "coder" && w.Agent != "writer" {
		t.Errorf("the waiting task is %+v", w)
	}
	p.prints("waits      " + w.Agent + " for github: 1 of 1 in use")
	id := w.QueueID
	if id == "" {
		t.Fatalf("the waiter has no task: %+v", w)
	}
	why := b.want(0, "why", id)
	for _, want := range []string{"It waits for capacity: github is full, 1 of 1 in use by ", "✗ github is full", "→ wait; signalbox tools queues"} {
		if !strings.Contains(why.out, want) {
			t.Errorf("why does not say %q:\n%s", want, why.out)
		}
	}
	if second := b.want(1, "demo"); !strings.Contains(second.err, "a demo runs already, at "+p.url+" (pid "+strconv.Itoa(p.pid())+")") {
		t.Errorf("a second demo: %s", second.err)
	}

	before, running := b.unended(c)
	p.kill()
	again := b.demo()
	if again.url != p.url {
		t.Errorf("the demo came back at %s, was at %s", again.url, p.url)
	}
	said := recovered.FindStringSubmatch(again.prints("Recovered"))
	if said == nil {
		t.Fatalf("what was recovered: %s", again.out.text())
	}
	nWaiting, _ := strconv.Atoi(said[1])
	nRunning, _ := strconv.Atoi(said[2])
	if n := nWaiting + nRunning; n > len(before)+1 || n < len(before)-1 || nRunning < 2 || nWaiting < 1 { // one may have ended, or been scheduled, before the kill
		t.Errorf("recovered %s; before there were %d tasks, %d of them running", said[0], len(before), len(running))
	}
	for _, id := range before {
		if _, err := c.Task(b.ctx(), id); err != nil {
			t.Errorf("%s is lost: %v", id, err)
		}
	}
	for _, id := range running {
		if task, err := c.Task(b.ctx(), id); err != nil || task.Agent != "researcher" {
			continue // the others take longer
		}
		b.completed(c, id)
		b.executedOnce(id)
	}

	again.stop()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	b.until("no process is left", func() bool { return len(b.living()) == 0 })
}

// A user stops an agent and continues it. Neither a demo that is killed
// meanwhile nor one that is left leaves a stopped process.
func TestDemoKeys(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("the test asks /proc whether a process is stopped, which this machine lacks")
	}
	b := newBox(t)
	folder := b.withDemo()
	s := b.screen(100, 30, "demo", "--pace", "1h")
	s.shows("Keys: w wedge")
	s.types("u")
	s.shows("Nothing is wedged")
	s.shows("started")
	s.types("w")
	s.shows("hangs now")
	b.until("an agent is stopped", func() bool { return b.stopped(folder) == 1 })
	s.types("w")
	s.shows("is wedged already")
	s.types("u")
	b.until("it goes on", func() bool { return b.stopped(folder) == 0 })

	s.types("w")
	b.until("an agent is stopped", func() bool { return b.stopped(folder) == 1 })
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.done
	again := b.screen(100, 30, "demo", "--pace", "1h")
	again.shows("Recovered: ")
	if n := b.stopped(folder); n != 0 {
		t.Errorf("%d agents are still stopped", n)
	}
	again.types("s")
	again.shows("submitted")
	again.types("w")
	again.shows("hangs now")
	again.types("q")
	if err := <-again.done; err != nil {
		t.Errorf("q: %v\n%s", err, again.text())
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	b.until("no process is left", func() bool { return len(b.living()) == 0 })
}

// stopped counts the stopped agents.
func (b *box) stopped(folder string) (n int) {
	b.t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "data", "agents", "*", "agent.json"))
	if err != nil || len(files) != 3 {
		b.t.Fatalf("agents: %v, %v", files, err)
	}
	for _, file := range files {
		var agent struct{ PID int }
		agent = parse[struct{ PID int }](b.t, b.read(file))
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(agent.PID), "stat"))
		if err != nil {
			continue
		}
		if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "T") {
			n++
		}
	}
	return n
}

// A file of another user at the demo's path in the shared temporary folder is
// not touched.
func TestDemoFolder(t *testing.T) {
	b := newBox(t)
	folder := b.withDemo()
	elsewhere := filepath.Join(b.root, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, folder); err != nil {
		t.Fatal(err)
	}
	if got := b.want(1, "demo"); !strings.Contains(got.err, "is not a folder of yours") {
		t.Errorf("a link in its place: %s", got.err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 0 {
		t.Errorf("what it points to was touched: %v, %v", left, err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	p := b.start("demo", "--pace", "1h", "--keep")
	p.prints("From another terminal")
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != fs.FileMode(0o700) {
		t.Errorf("the folder: %v, %v", info, err)
	}
	p.stop()
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("--keep: %v", err)
	}
	again := b.demo()
	again.prints("The previous demo kept its data. Found: ")
	again.kill()

	// Data that cannot be opened is left alone, and the error says what to do.
	if err := os.WriteFile(filepath.Join(folder, "data", "signalbox.db"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.want(1, "demo"); !strings.Contains(got.err, "rm -r "+folder) {
		t.Errorf("data that cannot be read: %s", got.err)
	}
}
