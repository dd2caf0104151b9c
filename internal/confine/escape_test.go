//go:build linux

package confine_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/internal/confine"
)

// planted is in the environment, the memory and an open file of the process
// that plays the director: no sandboxed program may find it.
const planted = "canary-of-the-director-5531"

// prey is the target of a sandboxed program: a process outside the sandbox, that
// of the tests, with a secret in its environment and in a file, a socket that
// stands for a container engine's, and an uninvolved process.
type prey struct {
	dir, secret string
	bystander   *exec.Cmd
	listener    net.Listener
}

func newPrey(t *testing.T) prey {
	t.Helper()
	dir := t.TempDir()
	p := prey{dir: dir, secret: filepath.Join(dir, "secret")}
	if err := os.WriteFile(p.secret, []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(p.secret)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if p.listener, err = net.Listen("unix", filepath.Join(dir, "engine.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.listener.Close() })
	log, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "log.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	p.bystander = exec.Command("/bin/sh", "-c", "read line")
	p.bystander.Env = []string{"CANARY=" + planted}
	in, err := p.bystander.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = in.Write([]byte("\n"))
		if err := p.bystander.Wait(); err != nil {
			t.Errorf("the bystander: %v", err)
		}
	})
	return p
}

// script fills in the targets of the attacks.
func (p prey) script(text string, more ...string) string {
	return strings.NewReplacer(append([]string{
		"SECRET", p.secret, "PLACE", p.dir, "VICTIM", strconv.Itoa(p.bystander.Process.Pid), "DIRECTOR", strconv.Itoa(os.Getpid()), "CANARY", planted,
		"ATTACK", os.Args[0] + " " + asAttacker,
	}, more...)...).Replace(text)
}

// Whatever a sandboxed program tries, it learns nothing from the process that
// started it, harms nothing outside, and leaves no process alive.
func TestAttackFromTheSandbox(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		for _, method := range []string{"groups", "rlimit"} {
			t.Run(kind+"/"+method, func(t *testing.T) {
				h := open(t, method)
				need(t, h, kind)
				p, write := newPrey(t), t.TempDir()
				s := confine.Sandbox{On: true, Required: true, Kind: kind, Read: []string{self}, Write: []string{write}}
				r := start(t, h, confine.Limits{Processes: 200}, s, p.script(`
cat SECRET /proc/VICTIM/root/SECRET /proc/DIRECTOR/root/SECRET /proc/DIRECTOR/cwd/../../SECRET
cat /proc/DIRECTOR/fd/* < /dev/null
tr '\0' '\n' < /proc/VICTIM/environ
tr '\0' '\n' < /proc/DIRECTOR/environ | grep . > /dev/null && echo can read the environment of the director
(exec 3< /proc/DIRECTOR/mem) && echo can open the memory of the director
(exec 3> /proc/VICTIM/mem) && echo can write the memory of another
ln SECRET WRITE/hard; cat WRITE/hard
ln -s SECRET WRITE/soft; cat WRITE/soft; (echo x >> WRITE/soft) && echo can write through a link
ln -s PLACE WRITE/folder; (: > WRITE/folder/new) && echo can make a file through a link
mv WRITE/folder WRITE/../moved
kill -0 VICTIM && echo can signal another
kill -STOP VICTIM && kill -CONT VICTIM && echo can stop another
kill -0 DIRECTOR && echo can signal the director
for g in /sys/fs/cgroup /sys/fs/cgroup/*; do (echo $$ > $g/cgroup.procs) && echo can leave its control group by $g; done
unshare -r true && unshare -rm sh -c 'mount --bind PLACE WRITE && cat WRITE/secret'
unshare -rmp --fork sh -c 'mount -t tmpfs none /tmp' && echo can mount
ATTACK ptrace VICTIM
ATTACK memory VICTIM
ATTACK descriptor DIRECTOR
ATTACK socket PLACE/engine.sock
ATTACK abstract ABSTRACT
ATTACK pair PLACE/log.sock
ATTACK limits VICTIM
ATTACK limits DIRECTOR
ATTACK signal VICTIM
ATTACK kernel KEY
(setsid sh -c 'trap "" TERM HUP INT; (setsid env -i /bin/sleep 7531 &) ; exec /bin/sleep 7531' &)
echo tried all
`, "WRITE", write, "ABSTRACT", abstract(t), "KEY", keyOfUser(t)))
				exit, _ := r.finish()
				out := r.out.String()
				if exit.Code != 0 || !strings.Contains(out, "tried all") || strings.Count(out, "attacker: ") != 10 {
					t.Fatalf("not everything was tried: %v: %s", exit, out)
				}
				if strings.Contains(out, "can ") || strings.Contains(out, planted) {
					t.Errorf("%s", out)
				}
				if got, err := os.ReadFile(p.secret); string(got) != planted {
					t.Errorf("the file now holds %q, %v", got, err)
				}
				if _, err := os.Lstat(filepath.Join(write, "..", "moved")); err == nil {
					t.Error("it moved its file out of its folder")
				}
				if left := running("/bin/sleep\x007531"); len(left) > 0 {
					t.Errorf("%v survived", left)
				}
			})
		}
	}
}

// keyOfUser is the name of a key with the canary in the user's keyring.
func keyOfUser(t *testing.T) string {
	t.Helper()
	key := fmt.Sprintf("signalbox-test-%d-%d", os.Getpid(), marks.Add(1))
	id, err := unix.AddKey("user", key, []byte(planted), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		t.Fatalf("no key can be put into the user's keyring: %v", err)
	}
	t.Cleanup(func() {
		if _, err := unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0); err != nil {
			t.Error(err)
		}
	})
	return key
}

// abstract is the name of an abstract socket on which the tests listen:
// desktops and container engines are reached that way.
func abstract(t *testing.T) string {
	t.Helper()
	at := fmt.Sprintf("@signalbox-test-%d-%d", os.Getpid(), marks.Add(1))
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return at
}

// Without a sandbox the same attacks succeed: they are real.
func TestTheAttacksAreAttacks(t *testing.T) {
	h := open(t, "rlimit")
	p := newPrey(t)
	r := start(t, h, confine.Limits{}, confine.Sandbox{}, p.script(`
cat SECRET; echo
tr '\0' '\n' < /proc/VICTIM/environ
kill -0 VICTIM && echo can signal another
ATTACK socket PLACE/engine.sock
ATTACK abstract ABSTRACT
ATTACK pair PLACE/log.sock
ATTACK memory VICTIM
ATTACK limits VICTIM
ATTACK signal VICTIM
ATTACK owner VICTIM
ATTACK memory-of-all x
ATTACK kernel KEY`, "ABSTRACT", abstract(t), "KEY", keyOfUser(t)))
	r.finish()
	out := r.out.String()
	for what, n := range map[string]int{
		planted: 3, "can signal another\n": 1, "can signal another by": 4, "can make another the owner": 1, "can connect": 2, "can send to the socket": 1,
		"can limit": 1, "can slow another": 1, "can bind": 1, "can schedule": 1, "can slow the disk": 1, "can ask by clone3": 1, "can share memory": 1,
	} {
		if strings.Count(out, what) != n {
			t.Errorf("it contains %q %d times, want %d: %s", what, strings.Count(out, what), n, out)
		}
	}
	if os.Getuid() == 0 && !strings.Contains(out, "can read the memory of another") {
		t.Errorf("%s", out)
	}
}

// With Landlock a program cannot create a socket by which it could ask another
// process for what it may not do itself. Socket pairs for its children work.
func TestAttackBySocketsPastLandlock(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []bool{false, true} {
		t.Run(fmt.Sprint("network ", network), func(t *testing.T) {
			h := open(t, "rlimit")
			need(t, h, "landlock")
			p := newPrey(t)
			s := confine.Sandbox{On: true, Required: true, Kind: "landlock", Network: network, Read: []string{self, p.dir}}
			r := start(t, h, confine.Limits{}, s, p.script(`
ATTACK socket PLACE/engine.sock
ATTACK pair PLACE/log.sock
ATTACK ring x
ATTACK stream x
ATTACK memory-of-all x
ATTACK udp 127.0.0.1:9
echo asking by x32; ATTACK x32 x; test $? = 159 && echo ended by SIGSYS
true`))
			exit, _ := r.finish()
			out := r.out.String()
			if exit.Code != 0 || strings.Count(out, "attacker: ") != 7 || !strings.Contains(out, "a pair of streams works") {
				t.Fatalf("not everything was tried: %v: %s", exit, out)
			}
			sends := strings.Contains(out, "can send a datagram: <nil>")
			if rest := strings.ReplaceAll(out, "can send a datagram: <nil>", ""); strings.Contains(rest, "can ") || sends != network {
				t.Errorf("%s", out)
			}
			if runtime.GOARCH == "amd64" && !strings.Contains(out, "ended by SIGSYS") {
				t.Errorf("the calls of x32 are not ended: %s", out)
			}
		})
	}
}

// The content of a run's temporary folder is removed, but not what a link in
// it points to.
func TestAttackByALinkInTheTemporaryFolder(t *testing.T) {
	h := open(t, "rlimit")
	need(t, h, "landlock")
	p := newPrey(t)
	s := confine.Sandbox{On: true, Kind: "landlock"}
	r := start(t, h, confine.Limits{}, s, p.script(`ln -s PLACE $TMPDIR/folder && ln -s SECRET $TMPDIR/file && mkdir $TMPDIR/d && ln -s / $TMPDIR/d/root && echo linked`))
	r.finish()
	if out := r.out.String(); !strings.Contains(out, "linked") {
		t.Fatal(out)
	}
	r.done()
	next := start(t, h, confine.Limits{}, s, `ls -A $TMPDIR; echo end`)
	next.finish()
	if out := next.out.String(); out != "end\n" {
		t.Errorf("the next run finds %q", out)
	}
	if got, err := os.ReadFile(p.secret); string(got) != planted {
		t.Errorf("the target of the link is %q, %v", got, err)
	}
}
