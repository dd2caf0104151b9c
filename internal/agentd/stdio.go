package agentd

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// stdio routes the output of a program: text for people to the log, events to events.jsonl,
// errors to stderr.log.
type stdio struct {
	r        *run
	plan     runner.Plan
	dirs     runDirs
	head     headBuf // beginning of a raw program's standard output: its answer
	errTail  tailBuf
	log      *redactor  // the run's log, for the text of events: a secret may be split over two events
	mu       sync.Mutex // the stream reads one line at a time
	lines    lineSplitter
	errLines lineSplitter
	gaveUp   bool        // the run was told to end, for a permanent problem, silence at a limit, or its budget
	patience *time.Timer // runs out when silence at a limit is too long; nil: no wait
	signs    int         // counts signs of life
	events   *cappedFile
	errFile  *cappedFile
	hidden   []*redactor   // redactors of both outputs
	terminal chan struct{} // closed at the terminal event
	ended    bool
	session  string
}

func newStdio(r *run, plan runner.Plan, p runDirs) (*stdio, error) {
	s := &stdio{r: r, plan: plan, dirs: p, terminal: make(chan struct{})}
	s.log = r.newRedactor(r.log)
	s.head.max, s.errTail.max = resultCap, 8<<10
	s.lines.line, s.errLines.line = s.event, s.stderrLine
	if plan.Raw {
		return s, nil
	}
	dir := r.d.disk.runDir(r.rec.TaskID)
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		return nil, err
	}
	if s.events, err = newCappedFile(filepath.Join(dir, "events.jsonl"), r.d.cfg.LogCap); err != nil {
		return nil, err
	}
	if s.errFile, err = newCappedFile(filepath.Join(dir, "stderr.log"), r.d.cfg.LogCap); err != nil {
		_ = s.events.Close()
		return nil, err
	}
	return s, nil
}

func (s *stdio) stdout() io.Writer {
	if s.plan.Raw {
		return s.hide(s.r.log, &s.head)
	}
	return s.hide(s.events, &s.lines)
}

func (s *stdio) stderr() io.Writer {
	if s.plan.Raw {
		return s.hide(s.r.log, &s.errTail)
	}
	return s.hide(&s.errLines)
}

func (s *stdio) hide(to ...io.Writer) io.Writer {
	h := s.r.newRedactor(io.MultiWriter(to...))
	s.hidden = append(s.hidden, h)
	return h
}

// event handles an event line.
func (s *stdio) event(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeText(s.plan.Stream.Line(line))
	s.nameSession()
	s.r.log.markActive() // also if it only writes a tool's arguments, or thinks
	if !s.ended && s.plan.Stream.Done() {
		s.ended = true
		close(s.terminal)
	}
}

// stderrLine handles a line of standard error.
func (s *stdio) stderrLine(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, pulse := s.plan.Stream.StderrLine(line)
	if pulse {
		s.r.log.markActive()
		s.heed()
		return
	}
	s.nameSession()
	line = append(line, '\n')
	_, _ = s.errFile.Write(line) // never fails, like the next
	_, _ = s.errTail.Write(line)
	s.writeText(text)
}

// writeText writes text for people, and records the current problem.
func (s *stdio) writeText(text string) {
	heard, _ := s.plan.Stream.Trouble()
	s.r.setTrouble(heard) // before the text: whoever reads the text may then ask for the problem
	s.heed()
	if text != "" {
		_, _ = io.WriteString(s.log, runner.Plain(text)) // an output log never fails
	}
}

// heed records what was learnt from the provider, and ends a run that cannot succeed.
func (s *stdio) heed() {
	h := s.plan.Stream.Heard()
	if _, hopeless := s.plan.Stream.Trouble(); hopeless {
		s.giveUp(h) // first: it may be about to ask the model again
	}
	s.r.hear(h)
	s.stopWaiting()
	if h.Patience <= 0 || s.gaveUp {
		return
	}
	s.signs++
	seen := s.signs
	s.patience = time.AfterFunc(h.Patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.signs == seen {
			s.giveUp(h)
		}
	})
}

func (s *stdio) giveUp(h runner.ProviderReport) {
	if !s.gaveUp {
		s.gaveUp = true
		s.r.requestStop(s.r.failHopeless(h))
	}
}

// stopWaiting records a sign of life of the CLI.
func (s *stdio) stopWaiting() {
	s.signs++
	if s.patience != nil {
		s.patience.Stop()
	}
}

// nameSession stores the conversation once the CLI has named it.
func (s *stdio) nameSession() {
	if id := s.plan.Stream.Session(); id != s.session {
		s.session = id
		s.noteSession()
	}
}

// noteSession stores the conversation as soon as it has an ID, so that it can continue after a
// cancel or a crash.
func (s *stdio) noteSession() {
	rec := s.r.record()
	if rec.Isolated {
		return
	}
	err := s.r.d.disk.saveSession(rec.SessionID, session{CLI: s.session, Home: s.dirs.home, Dir: s.dirs.dir})
	if err != nil {
		s.r.d.cfg.Logger.Error("a conversation could not be stored", "session", rec.SessionID, "error", err)
	}
}

// flush ends the last lines.
func (s *stdio) flush() {
	for _, h := range s.hidden {
		h.end()
	}
	s.lines.flush()
	s.errLines.flush()
	s.log.end()
}

func (s *stdio) exit(e proc.Exit) runner.Exit {
	return runner.Exit{Code: e.Code, Text: e.String(), Stdout: validText(s.head.b), Stderr: validText(s.errTail.b)}
}

func (s *stdio) close() {
	s.mu.Lock()
	s.stopWaiting()
	s.mu.Unlock()
	if s.events != nil {
		_ = s.events.Close()
	}
	if s.errFile != nil {
		_ = s.errFile.Close()
	}
}
