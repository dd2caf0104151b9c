package agentd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

const (
	maxTerminals         = 4
	terminalMessage      = 64 << 10 // bytes of one message from the client
	maxTerminalSide      = 1000     // columns or rows
	terminalPing         = 30 * time.Second
	terminalCloseTimeout = 2 * time.Second // for the end message to a client that may have gone
)

// terminal is an open terminal. It takes no slot.
type terminal struct {
	id   string // also the mark of its processes
	view api.AgentTerminal
	size proc.Size
	end  context.Context // its cause is why the daemon ends it
	stop context.CancelCauseFunc
}

// getTerminal handles GET /terminal.
func (d *Daemon) getTerminal(w http.ResponseWriter, req *http.Request) error {
	t, ref := d.checkTerminal(req)
	if ref == nil {
		ref = d.reserveTerminal(t)
	}
	if ref != nil {
		return ref
	}
	defer d.wg.Done()
	defer d.removeTerminal(t)
	defer t.stop(nil)
	conn, err := websocket.Accept(w, req, nil) // answers by itself on errors; refuses other origins
	if err != nil {
		return nil //nolint:nilerr // it was answered
	}
	defer conn.CloseNow() //nolint:errcheck // it is closed, or never was open
	conn.SetReadLimit(terminalMessage)
	newTermConn(d, t, conn).serve()
	return nil
}

// checkTerminal refuses a terminal that cannot be opened as requested.
func (d *Daemon) checkTerminal(req *http.Request) (*terminal, *refusal) {
	q := req.URL.Query()
	by := cmp.Or(q.Get("by"), "someone")
	switch {
	case !d.cfg.Terminal:
		return nil, refuse(http.StatusForbidden, "terminal_off", "this agent offers no terminal; start it with --terminal, or agent.terminal: true in its configuration")
	case d.cfg.Token == "":
		return nil, refuse(http.StatusForbidden, "terminal_off", "an agent without a token opens no terminal, because anybody on its host could then use it; start it with --agent-token, or agent.token in its configuration")
	case !strings.EqualFold(req.Header.Get("Upgrade"), "websocket"):
		return nil, invalid("a terminal is a WebSocket: ask for it with Connection: Upgrade and Upgrade: websocket")
	case !printable(by, 200):
		return nil, invalid("by must be 1 to 200 printable characters")
	}
	t := &terminal{view: api.AgentTerminal{By: by, Since: time.Now().UTC()}}
	var ref *refusal
	if t.size.Cols, ref = countParam(req, "cols", 80, maxTerminalSide); ref == nil {
		t.size.Rows, ref = countParam(req, "rows", 24, maxTerminalSide)
	}
	return t, ref
}

func printable(s string, most int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// reserveTerminal counts a terminal, or refuses it at the limit.
func (d *Daemon) reserveTerminal(t *terminal) *refusal {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	t.id = "term-" + hex.EncodeToString(id[:])
	t.end, t.stop = context.WithCancelCause(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closing:
		return refuse(http.StatusServiceUnavailable, "shutting_down", "the agent is shutting down; try again later")
	case len(d.terminals) >= maxTerminals:
		return refuse(http.StatusConflict, "too_many_terminals", "%d terminals are open at this agent, the most there can be; close one of them", maxTerminals)
	}
	d.terminals[t.id] = t
	d.wg.Add(1)
	d.notify()
	return nil
}

// removeTerminal removes an ended terminal.
func (d *Daemon) removeTerminal(t *terminal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.terminals[t.id] == t {
		delete(d.terminals, t.id)
		d.notify()
	}
}

// openTerminals lists the open terminals, oldest first; the caller holds mu.
func (d *Daemon) openTerminals() []api.AgentTerminal {
	var list []api.AgentTerminal
	for _, t := range d.terminals {
		list = append(list, t.view)
	}
	slices.SortFunc(list, func(a, b api.AgentTerminal) int { return a.Since.Compare(b.Since) })
	return list
}

// stopTerminals ends all terminals; the caller holds mu and has set closing.
func (d *Daemon) stopTerminals() {
	for _, t := range d.terminals {
		t.stop(errors.New("the agent was shut down"))
	}
}

// terminalArgv returns the program of a terminal and its environment. The agent's own token
// is not in it: users act under their own name.
func (d *Daemon) terminalArgv() (argv, env []string, err error) {
	argv, env, err = d.runner.Terminal(d.cfg.Home)
	switch {
	case len(d.cfg.TerminalCommand) > 0:
		argv, err = d.cfg.TerminalCommand, nil
	case err != nil:
		return nil, nil, err
	case len(argv) == 0:
		argv = []string{cmp.Or(envValue(d.cfg.Environ, "SHELL"), "/bin/sh")}
	}
	return argv, append(append(env, d.selfEnv()...), "TERM=xterm-256color"), err
}

// startTerminal starts the program. It stores the mark first, so that the processes are
// found after a crash.
func (d *Daemon) startTerminal(t *terminal, out *termConn) (*proc.Process, error) {
	argv, env, err := d.terminalArgv()
	if err != nil {
		return nil, err
	}
	if err := d.disk.saveTerminal(t.id, proc.Ident{Mark: t.id}); err != nil {
		return nil, err
	}
	child, err := proc.Start(proc.Spec{
		Argv: argv, Dir: d.cfg.WorkDir, Env: d.buildEnv(d.cfg.Home, env, nil), Stdout: out, Mark: t.id, Grace: d.cfg.KillGrace, TTY: &t.size,
	})
	if err != nil {
		os.Remove(d.disk.terminalPath(t.id))
		return nil, err
	}
	if err := d.disk.saveTerminal(t.id, child.Ident()); err != nil {
		d.cfg.Logger.Error("the process of a terminal could not be recorded", "error", err)
	}
	return child, nil
}

// endTerminal kills the program and its children. Processes that cannot be killed are left
// to the next start, which finds them by the stored mark.
func (d *Daemon) endTerminal(t *terminal, child *proc.Process) proc.Exit {
	exit, err := child.End()
	if err != nil {
		d.cfg.Logger.Error("a terminal was closed, and some of its processes live on", "by", t.view.By, "error", err)
		return exit
	}
	os.Remove(d.disk.terminalPath(t.id))
	return exit
}

func (d *disk) terminalPath(id string) string { return filepath.Join(d.dir, "terminals", id) }

func (d *disk) saveTerminal(id string, who proc.Ident) error {
	b, err := json.Marshal(who)
	if err != nil {
		return err
	}
	return os.WriteFile(d.terminalPath(id), b, 0o600)
}

// clearTerminals ends terminals left by an earlier process.
func (d *Daemon) clearTerminals() error {
	files, err := os.ReadDir(filepath.Join(d.disk.dir, "terminals"))
	if err != nil {
		return err
	}
	for _, f := range files {
		who := proc.Ident{Mark: f.Name()}
		if b, err := os.ReadFile(d.disk.terminalPath(f.Name())); err == nil {
			_ = json.Unmarshal(b, &who) // for a torn file the mark is enough
		}
		if err := proc.Clear(who, d.cfg.KillGrace); err != nil {
			d.cfg.Logger.Error("a terminal from before the restart is still alive", "terminal", f.Name(), "error", err)
			continue
		}
		os.Remove(d.disk.terminalPath(f.Name()))
	}
	return nil
}
