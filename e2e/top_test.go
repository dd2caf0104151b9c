package e2e_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// A user watches a director in the terminal: top shows what runs, follows
// changes, says when the director is down and when it is back, and leaves the
// terminal as it was.
func TestTop(t *testing.T) {
	b := newBox(t)
	b.vars["TERM"] = "xterm-256color"
	addr := freePort(t)
	up := b.up("--agents", "demo", "--addr", addr)
	c := b.client(up.url)
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer terminal.Close()
	before := stateOf(t, terminal)
	s := b.screenOn(master, terminal, "top")
	s.shows("Signalbox")
	s.shows("live")
	s.shows("the next task starts at once")
	if reflect.DeepEqual(stateOf(t, terminal), before) {
		t.Error("the terminal is not raw while the view is shown")
	}
	id := b.submit(c, api.SubmitRequest{Prompt: "sleep 60s, greet", Agent: "demo"})
	s.shows("greet")
	b.until("it runs", func() bool { // only the changed part of a sentence is redrawn
		task, err := c.Task(b.ctx(), id)
		return err == nil && task.State == "working"
	})
	if err := pty.Setsize(master, &pty.Winsize{Cols: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	s.types("w")
	s.shows("It has been running on agent demo")
	s.types("n")
	s.shows("New task")
	s.types("water the plants\r\r") // the agent is the task's
	s.shows("Queued: ")
	found, err := c.Search(b.ctx(), "agent:demo plants", client.SearchOptions{})
	if err != nil || len(found.Tasks) != 1 || found.Tasks[0].Source != "cli" {
		t.Errorf("%+v %v", found.Tasks, err)
	}
	s.types("\x1b")
	up.kill()
	s.shows("reconnecting")
	if !regexp.MustCompile("data [0-4]s old").MatchString(s.text()) {
		t.Error("a closed connection is not said before the data is old")
	}
	at := len(s.text()) // before the restart, because the view may see the director before its own message
	b.up("--agents", "demo", "--addr", addr)
	b.until("the view is live again", func() bool { return strings.Contains(s.text()[at:], "live") })
	s.types("q")
	if err := <-s.done; err != nil {
		t.Errorf("q: %v", err)
	}
	if !reflect.DeepEqual(stateOf(t, terminal), before) {
		t.Error("the terminal is not as it was before")
	}
	for _, mode := range []string{"\x1b[?1049l", "\x1b[?25h"} { // the previous screen, with its cursor
		s.shows(mode)
	}
}

func stateOf(t *testing.T, terminal *os.File) *term.State {
	t.Helper()
	var state *term.State
	conn, err := terminal.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Control(func(fd uintptr) { state, err = term.GetState(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Without a terminal, or without a director, top says so and what to do.
func TestTopRefuses(t *testing.T) {
	b := newBox(t)
	b.vars["TERM"] = "xterm"
	if got := b.want(2, "top"); !strings.Contains(got.err, "signalbox status --json") {
		t.Errorf("without a terminal: %s", got.err)
	}
	s := b.screen(80, 24, "top", "--director", "http://"+freePort(t))
	if err := <-s.done; err == nil || !strings.Contains(s.text(), "start a director with signalbox up") {
		t.Errorf("without a director: %v\n%s", err, s.text())
	}
}
