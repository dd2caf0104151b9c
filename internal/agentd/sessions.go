package agentd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// session is a stored conversation.
type session struct {
	CLI  string `json:"cli"`  // the CLI's own ID
	Home string `json:"home"` // HOME of the conversation
	Dir  string `json:"dir"`  // working directory of the conversation
}

func (d *disk) sessionPath(name string) string {
	return filepath.Join(d.dir, "sessions", name+".json")
}

func (d *disk) loadSession(name string) (session, bool) {
	var s session
	b, err := os.ReadFile(d.sessionPath(name))
	if err != nil || json.Unmarshal(b, &s) != nil {
		return session{}, false // the conversation begins again
	}
	return s, s.CLI != ""
}

// sessionsKept is the maximum number of stored conversations.
const sessionsKept = 10_000

// pruneSessions deletes the least recently used conversations.
func (d *disk) pruneSessions(forget func(name string) error) error {
	dir := filepath.Join(d.dir, "sessions")
	names, err := os.ReadDir(dir)
	if err != nil || len(names) <= sessionsKept {
		return err
	}
	used := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(names, func(a, b os.DirEntry) int { return cmp.Compare(used(a), used(b)) })
	for _, n := range names[:len(names)-sessionsKept] {
		if err := forget(strings.TrimSuffix(n.Name(), ".json")); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(dir, n.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (d *Daemon) forgetSession(name string) error { return d.runner.Forget(d.cfg.DataDir, name) }

func (d *disk) saveSession(name string, s session) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return writeDurable(d.sessionPath(name), b)
}

// rememberNamed stores a conversation of a kind whose program cannot list its own, if the
// director named it, the program gets its name, or it has a worktree.
func (r *run) rememberNamed(p runDirs) {
	if r.d.runner.StateDir(p.home) != "" || r.task.Isolated || (r.task.SessionID == "" && !r.d.tellsSession() && p.worktree == "") {
		return
	}
	rec := r.record()
	b, err := json.Marshal(session{CLI: rec.SessionID, Home: p.home, Dir: p.dir})
	if err == nil {
		err = replaceFile(r.d.disk.sessionPath(rec.SessionID), b) // after a power cut the conversation starts again
	}
	if err != nil {
		r.d.cfg.Logger.Error("a conversation could not be stored", "session", rec.SessionID, "error", err)
	}
}

// tellsSession reports whether runs get the name of their conversation.
func (d *Daemon) tellsSession() bool {
	return d.cfg.Kind == "llm" || slices.ContainsFunc(d.cfg.Runner.Command, func(a string) bool { return strings.Contains(a, "{session_id}") })
}

// getSessions handles GET /sessions.
func (d *Daemon) getSessions(w http.ResponseWriter, _ *http.Request) error {
	list, err := d.sessions()
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, api.AgentSessions{Sessions: list})
}

// sessions lists the conversations that a task can continue, most recently used first.
// Calls are serialized, because each reads up to sessionsKept files.
func (d *Daemon) sessions() ([]api.AgentSession, error) {
	d.listMu.Lock()
	defer d.listMu.Unlock()
	files, err := os.ReadDir(filepath.Join(d.disk.dir, "sessions"))
	if err == nil && len(files) > sessionsKept+sessionsKept/10 {
		err = d.disk.pruneSessions(d.forgetSession) // for a daemon that runs for years
	}
	if err != nil {
		return nil, err
	}
	all := make([]api.AgentSession, 0, len(files))
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		info, err := f.Info()
		if ok && err == nil && validSession(name) { // otherwise it is being written, or was just deleted
			all = append(all, api.AgentSession{SessionID: name, LastUsed: info.ModTime().UTC().Truncate(time.Millisecond)})
		}
	}
	slices.SortFunc(all, func(a, b api.AgentSession) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), strings.Compare(a.SessionID, b.SessionID))
	})
	all = all[:min(len(all), sessionsKept)]
	homes := map[string]func(string) bool{}
	return slices.DeleteFunc(all, func(a api.AgentSession) bool {
		s, ok := d.disk.loadSession(a.SessionID)
		if !ok {
			return true
		}
		if homes[s.Home] == nil {
			homes[s.Home] = d.runner.SessionsIn(s.Home)
		}
		return !homes[s.Home](s.CLI)
	}), nil
}

// conversationLocks serialize runs of a conversation within this process. Runs of programs
// are serialized by locks on their folders.
type conversationLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by session; closed when released
}

// acquire waits until no other run has the conversation. waiting is called once if it must
// wait.
func (t *conversationLocks) acquire(ctx context.Context, session string, waiting func()) error {
	for said := false; ; said = true {
		t.mu.Lock()
		if t.held == nil {
			t.held = map[string]chan struct{}{}
		}
		free, busy := t.held[session]
		if !busy {
			t.held[session] = make(chan struct{})
		}
		t.mu.Unlock()
		if !busy {
			return nil
		}
		if !said {
			waiting()
		}
		select {
		case <-free:
		case <-ctx.Done():
			return fmt.Errorf("another run goes on with the conversation %s: %w", session, context.Cause(ctx))
		}
	}
}

func (t *conversationLocks) release(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.held[session])
	delete(t.held, session)
}

// endKnownTimeout is how long a stopping agent waits for directors that
// follow its runs.
const endKnownTimeout = time.Second

// markEndKnown records that a caller has read how the run ended.
func (r *run) markEndKnown() { r.endKnownOnce.Do(func() { close(r.endKnown) }) }

// waitEndKnown waits until directors have read the end of stopped runs. A director may be
// between two polls; its next poll would fail, and the task would wait for the slot lease
// of an agent that may never return.
func waitEndKnown(stopped []*run) {
	over := time.NewTimer(endKnownTimeout)
	defer over.Stop()
	for _, r := range stopped {
		if r.record().Director == "" {
			continue // no director follows it
		}
		select {
		case <-r.endKnown:
		case <-over.C:
			return
		}
	}
}
