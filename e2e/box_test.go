package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// binary is the program under test, built once.
var binary string

// roles are what this binary can be besides the tests, by the environment
// variable that selects it.
var roles = map[string]func(spec string) error{powerWriterEnv: servePowerWriter}

func TestMain(m *testing.M) {
	if dir := os.Getenv(reapEnv); dir != "" {
		reap(dir)
		return
	}
	for env, serve := range roles {
		if spec := os.Getenv(env); spec != "" {
			if err := serve(spec); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	if spec := os.Getenv(laneAgentEnv); spec != "" {
		fmt.Fprintln(os.Stderr, serveLaneAgent(spec))
		os.Exit(1)
	}
	if log := os.Getenv(mcpServerEnv); log != "" {
		fmt.Fprintln(os.Stderr, serveMCP(log))
		return
	}
	if spec := os.Getenv(upstreamEnv); spec != "" {
		if err := serveUpstream(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if spec := os.Getenv(callerEnv); spec != "" {
		addOwner(os.Getenv("SIGNALBOX_HOME"))
		if err := runCaller(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// raced says that the binary under test was built with the race detector: only
// by make soak. In make test it would double the time, and the packages' own
// tests run with it already.
var raced = raceEnabled && soak.On()

// sideBySide runs two more tests in parallel than there are processors, unless
// -parallel sets the number: the tests here mostly wait for other processes.
func sideBySide() error {
	flag.Parse()
	const name = "test.parallel"
	if f := flag.Lookup(name); f.Value.String() == f.DefValue {
		return flag.Set(name, strconv.Itoa(2+runtime.GOMAXPROCS(0)))
	}
	return nil
}

func buildAndRun(m *testing.M) (int, error) {
	if err := sideBySide(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "signalbox-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL does not run as root, and has its folder in it
		return 1, err
	}
	binary = filepath.Join(dir, "signalbox")
	touchSources()
	if err := buildSignalbox(binary, olderVersion); err != nil {
		return 1, err
	}
	stop, err := startReaper(dir)
	if err != nil {
		return 1, err
	}
	defer stop()
	// The folders of the tests are in it too; the reaper recognizes a test's
	// processes by them.
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return 1, err
	}
	defer stopChrome()
	return m.Run(), nil
}

// buildSignalbox builds the program as a version. Without debug symbols the
// build takes two thirds of the time, and panics print the same. Only go run
// keeps its linked binary in the build cache: it "runs" the program by copying
// it.
func buildSignalbox(path, version string, flags ...string) error {
	args := append([]string{"run", "-exec", "cp", "-ldflags", "-s -w -X main.version=" + version}, flags...)
	if raced {
		args = append(args, "-race")
	}
	if said, err := exec.Command("go", append(args, "../cmd/signalbox", path)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the program under test: %w\n%s", err, said)
	}
	return nil
}

// touchSources opens the sources of the binary under test, which this package
// does not import, so that go test uses no cached result after they have
// changed.
func touchSources() {
	_ = filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case !d.IsDir() && !strings.HasSuffix(d.Name(), "_test.go"):
			_, err = os.Stat(path)
		}
		return err
	})
}

// box is a separate machine for one test.
type box struct {
	t    *testing.T
	root string // contains everything of the test
	home string // HOME
	work string // working folder of every process
	data string // data folder of director and up
	bin  string // the only folder on PATH
	vars map[string]string
	user *syscall.Credential // user that runs the processes; nil: the user of the tests
}

func newBox(t *testing.T) *box {
	t.Helper()
	t.Parallel()
	root := t.TempDir()
	b := &box{
		t: t, root: root, home: filepath.Join(root, "home"), work: filepath.Join(root, "work"),
		data: filepath.Join(root, "data"), bin: filepath.Join(root, "bin"), vars: map[string]string{},
	}
	for _, dir := range []string{b.home, b.work, b.bin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.vars["PATH"], b.vars["HOME"] = b.bin, b.home
	b.vars["SIGNALBOX_HOME"] = filepath.Join(b.home, ".signalbox")
	b.vars["SIGNALBOX_EXEC_LOG"] = b.execLog()
	// With the race detector, each process would linger for a second.
	b.vars["GORACE"] = "atexit_sleep_ms=0"
	t.Cleanup(b.sweep)
	t.Cleanup(addOwner(b.vars["SIGNALBOX_HOME"]))
	return b
}

func (b *box) execLog() string { return filepath.Join(b.root, "exec.jsonl") }

func (b *box) environ(more ...string) []string {
	var env []string
	for name, value := range b.vars {
		env = append(env, name+"="+value)
	}
	return append(env, more...)
}

// sweep ends remaining processes of the test, such as agents of up and their
// programs: everything with this box as its HOME.
func (b *box) sweep() {
	killAllOf(b.root)
	logs, _ := filepath.Glob(filepath.Join(b.root, "*", "agents", "*", "agent.log"))
	for _, path := range logs {
		said, _ := os.ReadFile(path)
		if crash := crashText(string(said)); crash != "" {
			b.t.Errorf("%s: %s", path, crash)
		}
		if b.t.Failed() {
			b.t.Logf("%s:\n%s", path, tail(string(said)))
		}
	}
}

// living returns the living processes of this box.
func (b *box) living() []int { return processesOf(b.root) }

// start runs the binary with the box's environment.
func (b *box) start(args ...string) *process {
	b.t.Helper()
	return launchAs(b.t, b.user, binary, b.work, b.environ(), args...)
}

var urlForm = regexp.MustCompile(`http://[^ ]+`)

// serve starts a role and waits until it serves.
func (b *box) serve(args ...string) *process {
	b.t.Helper()
	p := b.start(args...)
	p.url = urlForm.FindString(p.prints("http://"))
	return p
}

// director starts a director on the box's data folder.
func (b *box) director(args ...string) *process {
	b.t.Helper()
	return b.serve(b.server("director", args)...)
}

// up starts signalbox up on the box's data folder and waits for its agents.
func (b *box) up(args ...string) *process {
	b.t.Helper()
	p := b.serve(b.server("up", args)...)
	p.prints("Submit a prompt")
	return p
}

// server is the command line of a server, on a free port unless args name
// one.
func (b *box) server(role string, args []string) []string {
	line := []string{role, "--data", b.data}
	if !slices.Contains(args, "--addr") {
		line = append(line, "--addr", "127.0.0.1:0")
	}
	return append(line, args...)
}

// agent starts an agent that registers with the director.
func (b *box) agent(name, director string, args ...string) *process {
	b.t.Helper()
	p := b.serve(b.agentLine(name, director, args)...)
	if director != "" {
		p.says("INFO registered")
	}
	return p
}

func (b *box) agentLine(name, director string, args []string) []string {
	line := []string{"agent", "--name", name, "--data", filepath.Join(b.root, "agents-"+name)}
	if !slices.Contains(args, "--addr") {
		line = append(line, "--addr", "127.0.0.1:0")
	}
	if !slices.Contains(args, "--kind") && !slices.Contains(args, "--") {
		line = append(line, "--kind", "demo")
	}
	if director != "" {
		line = append(line, "--director", director)
	}
	return append(line, args...)
}

// result is the result of a command line.
type result struct {
	code     int
	out, err string
}

// cli runs a command to its end.
func (b *box) cli(args ...string) result {
	b.t.Helper()
	p := launch(b.t, b.work, b.environ(), args...)
	code := p.exits()
	return result{code, p.out.text(), p.err.text()}
}

// want runs a command and expects an exit code.
func (b *box) want(code int, args ...string) result {
	b.t.Helper()
	got := b.cli(args...)
	if got.code != code {
		b.t.Fatalf("signalbox %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got.code, code, got.out, got.err)
	}
	return got
}

// client is a client that survives restarts of the director.
func (b *box) client(url string) *client.Client {
	b.t.Helper()
	proof := client.ProofRequired
	if b.vars[handshake.EnvProof] == "off" { // url belongs to a proxy
		proof = client.ProofOff
	}
	c, err := client.New(url, client.Options{
		Tries: 2000, Patience: long, Token: b.token(), Proof: proof,
		Backoff: func(n int) time.Duration { return min(time.Duration(n)*10*time.Millisecond, 100*time.Millisecond) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *box) ctx() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), long)
	b.t.Cleanup(cancel)
	return ctx
}

// submit submits a task and returns its ID.
func (b *box) submit(c *client.Client, req api.SubmitRequest) string {
	b.t.Helper()
	got, err := c.Submit(b.ctx(), req, client.SubmitOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return got.QueueID
}

// end waits until a task has ended.
func (b *box) end(c *client.Client, id string) api.Task {
	b.t.Helper()
	task, err := c.Wait(b.ctx(), id)
	if err != nil {
		b.t.Fatalf("%s: %v", id, err)
	}
	return task
}

// completed waits until a task has ended, and expects that it completed.
func (b *box) completed(c *client.Client, id string) api.Task {
	b.t.Helper()
	task := b.end(c, id)
	if task.State != "completed" {
		b.t.Fatalf("%s ended as %s (%s): %s", id, task.State, task.Reason, task.Message)
	}
	return task
}

// until polls a condition that has no signal.
func (b *box) until(what string, met func() bool) {
	b.t.Helper()
	testkit.Wait(b.t, what, met)
}

var givenPorts sync.Map

// freePort is a port outside the range of ephemeral ports, so that it is
// still free when a killed process restarts, and above 10080, the highest
// port that browsers and Node refuse. No two tests get the same port, because
// a port is unused while its process is dead.
func freePort(t *testing.T) string {
	t.Helper()
	for range 200 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10100+rand.IntN(20000)))
		if _, given := givenPorts.LoadOrStore(addr, true); given {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// parse decodes a command's JSON output.
func parse[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

func (b *box) file(path, text string, mode os.FileMode) string {
	b.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.root, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *box) read(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}
