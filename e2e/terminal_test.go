package e2e_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/signalbox-ai/signalbox/client"
)

// screen is a command in a terminal of its own, as for a user.
type screen struct {
	*tape
	b    *box
	cmd  *exec.Cmd
	pty  *os.File
	done chan error
}

func (b *box) screen(cols, rows uint16, args ...string) *screen {
	b.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = b.work, b.environ()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		b.t.Fatal(err)
	}
	s := &screen{tape: newTape(), b: b, cmd: cmd, pty: f, done: make(chan error, 1)}
	go func() {
		_, _ = io.Copy(s, f) // it ends with an error when the program has ended
		s.close()
		s.done <- cmd.Wait()
	}()
	b.t.Cleanup(func() {
		f.Close()
		_ = cmd.Process.Kill() // usually it has already ended
	})
	return s
}

// screenOn is screen in a terminal that the test has opened, and that stays
// open when the command has ended.
func (b *box) screenOn(master, terminal *os.File, args ...string) *screen {
	b.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = b.work, b.environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := pty.Setsize(master, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	s := &screen{tape: newTape(), b: b, cmd: cmd, pty: master, done: make(chan error, 1)}
	go func() { _, _ = io.Copy(s, master) }() // ends when the test closes it
	go func() { s.done <- cmd.Wait() }()
	b.t.Cleanup(func() { _ = cmd.Process.Kill() }) // usually it has already ended
	return s
}

// types sends keystrokes.
func (s *screen) types(text string) {
	s.b.t.Helper()
	if _, err := s.pty.WriteString(text); err != nil {
		s.b.t.Fatal(err)
	}
}

// shows waits until a text is on the screen.
func (s *screen) shows(text string) {
	s.b.t.Helper()
	ctx, cancel := context.WithTimeout(s.b.t.Context(), long)
	defer cancel()
	if err := s.holds(ctx, text); err != nil {
		s.b.t.Fatalf("%s: the screen does not show %q: %v\n--- screen\n%s", strings.Join(s.cmd.Args, " "), text, err, tail(s.text()))
	}
}

// A user opens a terminal at an agent with the command line, works in it,
// resizes it and leaves. It takes no slot of the agent, and it is recorded.
func TestTerminal(t *testing.T) {
	stty, err := exec.LookPath("stty")
	if err != nil {
		t.Skip("the test asks stty for the size of the terminal, which this machine lacks")
	}
	b := newBox(t)
	b.vars["SHELL"] = "/bin/sh"
	up := b.up("--agents", "demo", "--terminal")
	c := b.client(up.url)
	b.untilState(c, "demo", "idle") // the director opens no terminal before the agent is connected
	s := b.screen(101, 37, "terminal", "demo")
	s.types("PS1=; echo it is $((6*7))\n")
	s.shows("it is 42")
	s.types(stty + " size\n")
	s.shows("37 101")
	agents, err := c.Agents(b.ctx())
	if err != nil || len(agents) != 1 || len(agents[0].Terminals) != 1 || agents[0].State != "idle" {
		t.Errorf("the agent while a terminal is open: %+v, %v", agents, err)
	}
	if err := pty.Setsize(s.pty, &pty.Winsize{Cols: 64, Rows: 20}); err != nil {
		t.Fatal(err)
	}
	b.until("the terminal has the new size", func() bool {
		s.types(stty + " size\n")
		return strings.Contains(s.text(), "20 64")
	})
	// The terminal does not use the queue: a chat is answered meanwhile.
	if got := b.want(0, "chat", "demo", "sleep 1ms, meanwhile"); !strings.Contains(got.out, "meanwhile") {
		t.Errorf("chat: %+v", got)
	}
	s.types("exit 3\n")
	<-s.done
	if !strings.Contains(s.text(), "The terminal of demo ended: exit code 3") {
		t.Errorf("the end: %s", s.text())
	}
	b.until("open and close are recorded", func() bool {
		log, err := c.Audit(b.ctx(), client.AuditOptions{EventType: "terminal"})
		return err == nil && len(log.Rows) == 2 && log.Rows[0].Action == "open" && log.Rows[1].Action == "close" && log.Rows[0].AgentName == "demo"
	})
	b.want(0, "audit", "verify")
}

// Programs in a terminal do not outlive it.
func TestTerminalIsClosed(t *testing.T) {
	b := newBox(t)
	b.vars["SHELL"] = "/bin/sh"
	up := b.up("--agents", "demo", "--terminal")
	b.untilState(b.client(up.url), "demo", "idle")
	before := len(b.living())
	s := b.screen(80, 24, "terminal", "demo")
	s.types("PS1=; (trap '' HUP TERM; while :; do read x; done <" + b.newGate().fifo + ") & echo begun $((6*7))\n")
	s.shows("begun 42") // computed, so it is not the echo of the input, and does not depend on a prompt
	s.types("\r~.")
	<-s.done
	b.until("everything of the terminal has ended", func() bool { return len(b.living()) == before })
}

// Terminals are off unless they are turned on, on both sides.
func TestTerminalsAreOff(t *testing.T) {
	b := newBox(t)
	up := b.up("--agents", "demo")
	if code, said := b.ask("POST", up.url+"/api/agents/demo/terminal", ""); code != 501 || !strings.Contains(said, "--terminal") {
		t.Errorf("%d %s", code, said)
	}
}
