//go:build unix

package proc_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// parent returns the parent of a process.
func parent(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	n, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A process that left session, parents and environment before the first check is
// found by the output that it holds, and is ended.
func TestProcessesHoldingAnOutputAreEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who has a file open is known on Linux alone")
	}
	out := newOutput()
	p := start(t, "gone", out, 0)
	pid := out.ready(t)
	go io.Copy(io.Discard, out.pr)
	<-p.Exited()
	testkit.Wait(t, "the orphan is handed to us", func() bool { return parent(t, pid) == os.Getpid() })
	exit, err := p.End()
	if err != nil || exit.Held {
		t.Errorf("%+v, %v", exit, err)
	}
	out.pw.Close()
	dead(t, pid)
}

// A process that existed before the run keeps the output that it holds, and
// Exit reports that.
func TestAnOutputHeldByAnotherProcessIsReported(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("an output is opened by /proc")
	}
	out := newOutput()
	p := start(t, "hang", out, 0)
	out.ready(t)
	go io.Copy(io.Discard, out.pr)
	mine, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", p.Ident().PID), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	exit, err := p.End()
	if err != nil || !exit.Held {
		t.Errorf("%+v, %v", exit, err)
	}
	out.pw.Close()
}
