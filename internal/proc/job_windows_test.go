package proc_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/proc"
)

const flag = "proc-test-"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], flag) {
		if os.Args[1] == flag+"family" {
			child := exec.Command(os.Args[0], flag+"sleep")
			if err := child.Start(); err != nil {
				panic(err)
			}
			os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
		}
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// A program is ended with all its child processes.
func TestEndLeavesNothingAlive(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	p, err := proc.Start(proc.Spec{Argv: []string{os.Args[0], flag + "family"}, Env: os.Environ(), Stdin: "x", Stdout: w, Mark: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Alive()); n != 2 {
		t.Errorf("%d are alive before the end, want the program and its child", n)
	}
	if _, err := p.End(); err != nil {
		t.Fatal(err)
	}
	if pids := p.Alive(); len(pids) > 0 || proc.Identify(child).Start != 0 {
		t.Errorf("%v live", pids)
	}
}

// Processes that another process left are found by PID, start time and parent.
func TestClearByIdent(t *testing.T) {
	cmd := exec.Command(os.Args[0], flag+"family")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := proc.Identify(cmd.Process.Pid)
	other := id
	other.Start--
	if err := proc.Clear(other, 0); err != nil || len(proc.Alive(id)) == 0 {
		t.Errorf("an earlier program's pid: %v, and %v live", err, proc.Alive(id))
	}
	if err := proc.Clear(id, 0); err != nil || len(proc.Alive(id)) > 0 {
		t.Errorf("%v, and %v live", err, proc.Alive(id))
	}
	_ = cmd.Wait()
}

// The command interpreter gets nothing that it could take for commands.
func TestABatchFileGetsNoCommands(t *testing.T) {
	path := t.TempDir() + `\a.cmd`
	if err := os.WriteFile(path, []byte("@exit /b 3\r\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for arg, fine := range map[string]bool{"plain --flag=1": true, `x" & calc`: false, "%PATH%": false} {
		p, err := proc.Start(proc.Spec{Argv: []string{path, arg}, Env: os.Environ(), Mark: t.Name(), Grace: time.Second})
		if (err == nil) != fine {
			t.Errorf("%q: %v", arg, err)
		}
		if err == nil {
			_, _ = p.End()
		}
	}
}
