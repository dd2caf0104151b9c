package serve

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// takenPort returns a listener on a port that is recorded as that of a process.
func takenPort(t *testing.T, pid int) net.Listener {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := WriteJSON(directorFile(), api.DirectorFile{URL: "http://" + l.Addr().String(), PID: pid, Data: "/data"}); err != nil {
		t.Fatal(err)
	}
	return l
}

// If a director is killed while it starts a command, that command holds the port for a
// moment.
func TestPortOfADeadDirectorIsWaitedFor(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	held := takenPort(t, dead.Process.Pid)
	time.AfterFunc(100*time.Millisecond, func() { _ = held.Close() })
	l, err := Listen(t.Context(), held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestPortOfALivingDirectorIsRefusedAtOnce(t *testing.T) {
	l := takenPort(t, os.Getpid())
	begun := time.Now()
	_, err := Listen(t.Context(), l.Addr().String())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a director with data folder /data (pid %d)", os.Getpid())) {
		t.Errorf("told %v", err)
	}
	if took := time.Since(begun); took >= deadHolds {
		t.Errorf("after %s", took)
	}
}
