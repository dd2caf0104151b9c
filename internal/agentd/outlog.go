package agentd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/api"
)

// logShape says which part of an output is in the log file: the first Head bytes and, if the
// rest did not fit, a note and the last Tail bytes.
type logShape struct {
	Head int64 `json:"head"`
	Tail int64 `json:"tail,omitempty"`
}

// outLog is the output of one run: in a file up to a cap, its end in memory, and a signal for
// readers.
type outLog struct {
	mu      sync.Mutex
	path    string
	file    *os.File
	cap     int64
	shape   logShape
	total   int64
	tail    []byte // at most the last tailSize bytes
	last    time.Time
	changed chan struct{} // closed at the next write and at the end
	done    bool
	err     error // of writing the file; the run continues without the file
}

func newOutLog(path string, limit int64) *outLog {
	return &outLog{path: path, cap: limit, changed: make(chan struct{})}
}

// open creates the file at the first byte; the caller holds mu.
func (l *outLog) open() error {
	err := os.MkdirAll(filepath.Dir(l.path), 0o700)
	if err != nil {
		return err
	}
	l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	return err
}

// endedLog is the log of a run of an earlier process.
func endedLog(path string, shape logShape, total int64) *outLog {
	return &outLog{path: path, shape: shape, total: total, done: true}
}

// Write never fails: a full disk does not end a run. Readers see Truncated.
func (l *outLog) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return len(b), nil
	}
	if l.file == nil && l.err == nil {
		l.err = l.open()
	}
	if room := l.cap - l.shape.Head; room > 0 && l.shape.Head == l.total && l.err == nil {
		n, err := l.file.Write(b[:min(int64(len(b)), room)])
		l.shape.Head += int64(n)
		l.err = err
	}
	l.total += int64(len(b))
	l.tail = append(l.tail, b...)
	if len(l.tail) > 2*tailSize { // trimmed occasionally, not at each write
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-tailSize:]...)
	}
	l.last = time.Now()
	close(l.changed)
	l.changed = make(chan struct{})
	return len(b), nil
}

// finish closes the log. If the log was capped, the file gets a note and the end of the
// output.
func (l *outLog) finish() (logShape, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return l.shape, l.total
	}
	l.done = true
	l.trim()
	if missing := l.total - l.shape.Head; missing > 0 && l.err == nil {
		end := l.tail[max(0, int64(len(l.tail))-missing):]
		if cut := missing - int64(len(end)); cut > 0 {
			_, l.err = fmt.Fprintf(l.file, "\n[signalbox: the log reached its cap of %d bytes; %d bytes left out here]\n", l.cap, cut)
		}
		if l.err == nil {
			_, l.err = l.file.Write(end)
			l.shape.Tail = int64(len(end))
		}
	}
	if l.file != nil {
		l.file.Close()
	}
	close(l.changed)
	return l.shape, l.total
}

func (l *outLog) trim() {
	if over := len(l.tail) - tailSize; over > 0 {
		l.tail = l.tail[over:]
	}
}

// markActive records activity without output.
func (l *outLog) markActive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.last = time.Now()
	}
}

// progress returns how many bytes were written, and when the last activity
// was.
func (l *outLog) progress() (int64, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total, l.last
}

// waitAfter returns a channel that is closed once there are more than after bytes or the output
// has ended; nil: already the case.
func (l *outLog) waitAfter(after int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done || l.total > after {
		return nil
	}
	return l.changed
}

var now = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// waitAfterOrClosed is waitAfter with a closed channel instead of nil.
func (l *outLog) waitAfterOrClosed(after int64) <-chan struct{} {
	if c := l.waitAfter(after); c != nil {
		return c
	}
	return now
}

// recent returns the last n bytes as text.
func (l *outLog) recent(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.tail[max(0, len(l.tail)-n):]
	return validText(b)
}

// read returns the output after byte after, at most tailSize bytes.
func (l *outLog) read(after int64) (api.AgentOutput, error) {
	l.mu.Lock()
	after = min(max(after, 0), l.total)
	memStart := l.total - int64(len(l.tail))
	var b []byte
	seq := after
	switch {
	case after >= memStart:
		b = append(b, l.tail[after-memStart:]...)
	case after < l.shape.Head:
		n := min(tailSize, l.shape.Head-after)
		l.mu.Unlock()
		return l.readFile(after, after, n)
	case l.shape.Tail > 0 && len(l.tail) == 0:
		// Written by an earlier process: the end of the output follows the note in
		// the file.
		seq = max(after, l.total-l.shape.Tail)
		l.mu.Unlock()
		return l.readEnd(after, seq)
	default:
		seq = memStart
		b = append(b, l.tail...)
	}
	done := l.done
	l.mu.Unlock()
	if len(b) > tailSize {
		b, done = b[:tailSize], false
	}
	if !done {
		b = wholeRunes(b)
	}
	return api.AgentOutput{Seq: seq, Text: validText(b), Next: seq + int64(len(b)), Truncated: seq > after, Done: done}, nil
}

// readFile returns n bytes of the file at pos; they are the output from byte
// seq.
func (l *outLog) readFile(seq, pos, n int64) (api.AgentOutput, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return api.AgentOutput{}, err
	}
	defer f.Close()
	b := make([]byte, n)
	got, err := f.ReadAt(b, pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return api.AgentOutput{}, err
	}
	b = b[:got]
	l.mu.Lock()
	done := l.done && seq+int64(got) >= l.total
	l.mu.Unlock()
	if !done {
		b = wholeRunes(b)
	}
	return api.AgentOutput{Seq: seq, Text: validText(b), Next: seq + int64(len(b)), Done: done}, nil
}

func (l *outLog) readEnd(after, seq int64) (api.AgentOutput, error) {
	st, err := os.Stat(l.path)
	if err != nil {
		return api.AgentOutput{}, err
	}
	n := l.total - seq
	out, err := l.readFile(seq, st.Size()-n, n)
	out.Truncated = seq > after
	return out, err
}

// wholeRunes drops an incomplete character at the end; the next read returns
// it.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// validText makes bytes valid UTF-8.
func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// cappedFile keeps the beginning of what the programs of a run write, one after another.
type cappedFile struct {
	f    *os.File
	left int64
	cut  bool
}

func newCappedFile(path string, limit int64) (*cappedFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &cappedFile{f: f, left: max(0, limit-st.Size())}, nil
}

// Write never fails; see outLog.Write.
func (c *cappedFile) Write(b []byte) (int, error) {
	n := min(int64(len(b)), c.left)
	if n > 0 {
		if _, err := c.f.Write(b[:n]); err != nil {
			c.left, c.cut = 0, true
			return len(b), nil //nolint:nilerr // a failing log does not end a run
		}
		c.left -= n
	}
	if n < int64(len(b)) && !c.cut {
		c.cut = true
		fmt.Fprint(c.f, "\n{\"signalbox\":\"cut here: the file reached its cap\"}\n")
	}
	return len(b), nil
}

func (c *cappedFile) Close() error { return c.f.Close() }

// headBuf keeps the first max bytes, tailBuf the last.
type headBuf struct {
	max int
	b   []byte
}

func (h *headBuf) Write(b []byte) (int, error) {
	if room := h.max - len(h.b); room > 0 {
		h.b = append(h.b, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

type tailBuf struct {
	max int
	b   []byte
}

func (t *tailBuf) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

// maxLine is the maximum length of an event line; longer ones are skipped.
const maxLine = 16 << 20

// lineSplitter passes on lines without their line ends, except blank lines.
type lineSplitter struct {
	line func([]byte)
	buf  []byte
	skip bool // inside a line that is too long
}

func (s *lineSplitter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		s.add(b[:i])
		s.flush()
		b = b[i+1:]
	}
	s.add(b)
	return n, nil
}

func (s *lineSplitter) add(b []byte) {
	if s.skip || len(s.buf)+len(b) > maxLine {
		s.skip, s.buf = true, nil
		return
	}
	s.buf = append(s.buf, b...)
}

// flush ends an unterminated last line.
func (s *lineSplitter) flush() {
	if line := bytes.TrimRight(s.buf, " \t\r"); len(line) > 0 {
		s.line(line)
	}
	s.buf, s.skip = s.buf[:0], false
}

// execLog writes a line at the start and the end of each execution. Tests use it to prove
// that executions do not overlap.
type execLog struct {
	mu   sync.Mutex
	path string
}

type execLine struct {
	QueueID string    `json:"queue_id"`
	TaskID  string    `json:"task_id"`
	Fence   int64     `json:"fence"`
	Slot    int       `json:"slot"`
	Event   string    `json:"event"` // start or end
	At      time.Time `json:"at"`
	PID     int       `json:"pid"` // of the program; for a run within the daemon, of the daemon
}

func (e *execLog) add(l execLine) error {
	if e.path == "" {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.At = time.Now()
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(e.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(b, '\n'))
	return err
}
