//go:build linux

package confine_test

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

var kinds = []string{"bubblewrap", "landlock"}

// need skips the test if a sandbox is not available.
func need(t *testing.T, h *confine.Host, kind string) {
	t.Helper()
	for _, r := range h.Report().Sandbox {
		if r.Kind == kind && !r.OK {
			t.Skipf("no %s: %s", kind, r.Note)
		}
	}
}

func TestSandboxFiles(t *testing.T) {
	for _, kind := range kinds {
		for _, method := range []string{"groups", "rlimit"} {
			t.Run(kind+"/"+method, func(t *testing.T) {
				h := open(t, method)
				need(t, h, kind)
				dir := t.TempDir()
				place := func(n string) string {
					d := filepath.Join(dir, n)
					if err := os.Mkdir(d, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(d, "file"), []byte("content of "+n+"\n"), 0o644); err != nil {
						t.Fatal(err)
					}
					return d
				}
				secret, read, write := place("secret"), place("read"), place("write")
				s := confine.Sandbox{On: true, Required: true, Kind: kind, Read: []string{read}, Write: []string{write}}
				r := start(t, h, confine.Limits{Processes: 20, FileSize: 1 << 20}, s, strings.NewReplacer("SECRET", secret, "READ", read, "WRITE", write).Replace(`
cat SECRET/file && echo can read a secret
cat READ/file
echo x > READ/new && echo can write what it may only read
echo x > SECRET/new && echo can write elsewhere
echo x > /usr/share/new && echo can write to the system
echo written > WRITE/new
t=${TMPDIR:-/tmp}; echo x > $t/new && echo has a tmp
echo x > /dev/null && echo has null
grep NoNew /proc/self/status`))
				exit, _ := r.finish()
				out := r.out.String()
				for _, want := range []string{"content of read", "has a tmp", "has null", "NoNewPrivs:\t1"} {
					if !strings.Contains(out, want) {
						t.Errorf("no %q", want)
					}
				}
				if exit.Code != 0 || strings.Contains(out, "can ") || strings.Contains(out, "content of secret") {
					t.Errorf("%v: %s", exit, out)
				}
				if b, err := os.ReadFile(filepath.Join(write, "new")); string(b) != "written\n" {
					t.Errorf("%q, %v", b, err)
				}
				if r.box.SandboxKind() != kind {
					t.Errorf("the sandbox is %q", r.box.SandboxKind())
				}
			})
		}
	}
}

func TestSandboxNetwork(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash, which connects without another program")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	script := fmt.Sprintf(`bash -c 'echo > /dev/tcp/127.0.0.1/%d' && echo connected`, l.Addr().(*net.TCPAddr).Port)
	for _, kind := range kinds {
		for _, network := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", kind, network), func(t *testing.T) {
				h := open(t, "groups")
				need(t, h, kind)
				r := start(t, h, confine.Limits{}, confine.Sandbox{On: true, Kind: kind, Network: network}, script)
				r.finish()
				if got := strings.Contains(r.out.String(), "connected"); got != network {
					t.Errorf("connected: %v: %s", got, r.out)
				}
			})
		}
	}
}

// A box whose thread gave up rights for one run gives the next run the rights
// of its own sandbox.
func TestSandboxOfOneRunIsNotThatOfTheNext(t *testing.T) {
	h := open(t, "groups")
	need(t, h, "landlock")
	a, b := t.TempDir(), t.TempDir()
	for _, c := range []struct {
		s    confine.Sandbox
		want string
	}{
		{confine.Sandbox{On: true, Kind: "landlock", Write: []string{a}}, "a"},
		{confine.Sandbox{On: true, Kind: "landlock", Write: []string{a}}, "a"},
		{confine.Sandbox{On: true, Kind: "landlock", Write: []string{b}}, "b"},
		{confine.Sandbox{}, "ab"},
	} {
		r := start(t, h, confine.Limits{}, c.s, `exec 2>/dev/null; (: > `+a+`/x) && printf a; (: > `+b+`/x) && printf b; ls -A ${TMPDIR:-/var/empty}; : > ${TMPDIR:-/dev}/null`)
		r.finish()
		if got := r.out.String(); got != c.want {
			t.Errorf("%+v: wrote %q", c.s, got)
		}
		r.done()
	}
}

// Cancel gives the program in the sandbox its grace, although the same signal
// would end the process that holds the sandbox at once.
func TestSandboxGrace(t *testing.T) {
	for _, kind := range kinds {
		for _, method := range []string{"groups", "rlimit"} {
			t.Run(kind+"/"+method, func(t *testing.T) {
				h := open(t, method)
				need(t, h, kind)
				r := start(t, h, confine.Limits{}, confine.Sandbox{On: true, Kind: kind}, `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
				r.out.said(t, "ready")
				exit, err := r.EndWithin(20e9)
				if err != nil || exit.Code != 7 || !strings.Contains(r.out.String(), "bye") {
					t.Errorf("%v, %v: %s", exit, err, r.out)
				}
			})
		}
	}
}

func TestSandboxRequiredFailsClosed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var log strings.Builder
	o := confine.WithLandlock(confine.Options{Name: name(t), Method: "rlimit", Log: slog.New(slog.NewTextHandler(&log, nil))}, 0)
	h, err := confine.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, kind := range []string{"", "bubblewrap", "landlock"} {
		_, err := h.Take(confine.Limits{}, confine.Sandbox{On: true, Required: true, Kind: kind})
		if err == nil || kind != "landlock" && !strings.Contains(err.Error(), "install the package bubblewrap") {
			t.Errorf("%q: %v", kind, err)
		}
	}
	for range 2 { // if it is optional, the run continues without it and reports that once
		b, err := h.Take(confine.Limits{}, confine.Sandbox{On: true})
		if err != nil {
			t.Fatal(err)
		}
		if b.SandboxKind() != "" {
			t.Errorf("an empty sandbox: %s", b.SandboxKind())
		}
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "without the sandbox"); n != 1 {
		t.Errorf("warned %d times: %s", n, log.String())
	}
}

func TestSandboxBadPlaces(t *testing.T) {
	h := open(t, "rlimit")
	for _, s := range []confine.Sandbox{
		{On: true, Read: []string{"relative"}},
		{On: true, Write: []string{"/nonexistent/place"}},
		{On: true, Kind: "chroot"},
	} {
		if b, err := h.Take(confine.Limits{}, s); err == nil {
			t.Errorf("%+v was taken", s)
			_ = b.Free()
		}
	}
}

// What older versions of Landlock do not confine is confined by the filter of
// system calls, or the sandbox is refused to runs that require one.
func TestSandboxOfOlderKernels(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version  int
		required string // in the error of a run that requires a sandbox; "": none
		weak     string
	}{
		{2, "empty files", "empty files"},
		{3, "", "signal"},
		{5, "", "signal"},
		{6, "", ""},
	} {
		t.Run(fmt.Sprint("version ", c.version), func(t *testing.T) {
			var log strings.Builder
			h := open(t, "rlimit", func(o confine.Options) confine.Options {
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				return confine.WithLandlock(o, c.version)
			})
			need(t, h, "landlock")
			p := newPrey(t)
			s := confine.Sandbox{On: true, Required: true, Kind: "landlock", Read: []string{self}}
			box, err := h.Take(confine.Limits{}, s)
			if err == nil {
				err = box.Free()
			}
			if c.required == "" && err != nil || c.required != "" && (err == nil || !strings.Contains(err.Error(), c.required)) {
				t.Errorf("required: %v", err)
			}
			s.Required = false
			owner := "" // from version 6 Landlock itself confines signals
			if c.version < 6 {
				owner = "ATTACK owner VICTIM"
			}
			r := start(t, h, confine.Limits{OpenFiles: 100}, s, p.script(strings.ReplaceAll(`
kill -0 VICTIM && echo can signal another
kill -0 DIRECTOR && echo can signal the director
ATTACK signal VICTIM
OWNER
(sleep 0.01; echo a child ran) & wait
echo tried all`, "OWNER", owner)))
			exit, _ := r.finish()
			out := r.out.String()
			if exit.Code != 0 || !strings.Contains(out, "a child ran") || !strings.Contains(out, "tried all") {
				t.Fatalf("not everything was tried: %v: %s", exit, out)
			}
			if strings.Contains(out, "can ") {
				t.Error(out)
			}
			for _, report := range h.Report().Sandbox {
				if report.Kind == "landlock" && (report.Weak == "" != (c.weak == "") || !strings.Contains(report.Weak, c.weak) || report.TooWeak != (c.required != "")) {
					t.Errorf("%+v", report)
				}
			}
			if warned := strings.Count(log.String(), "weaker here"); warned != min(len(c.weak), 1) || !strings.Contains(log.String(), c.weak) {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}
