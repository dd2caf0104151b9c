package agentd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// clean makes bytes valid UTF-8 text.
func clean(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// cappedFile keeps the beginning of what is written to it.
type cappedFile struct {
	f    *os.File
	left int64
	cut  bool
}

func newCappedFile(path string, limit int64) (*cappedFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &cappedFile{f: f, left: limit}, nil
}

// Write never fails; see outLog.Write.
func (c *cappedFile) Write(b []byte) (int, error) {
	n := min(int64(len(b)), c.left)
	if n > 0 {
		if _, err := c.f.Write(b[:n]); err != nil {
			c.left, c.cut = 0, true
			return len(b), nil //nolint:nilerr // a run does not end because its log cannot be written
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

// maxLine is the longest event line that is read; a longer one is left out.
const maxLine = 16 << 20

// lineSplitter hands on lines without their end, but for blank ones.
type lineSplitter struct {
	line func([]byte)
	buf  []byte
	skip bool // within a line that is too long
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

// flush ends the line, also one that the program did not end itself.
func (s *lineSplitter) flush() {
	if line := bytes.TrimRight(s.buf, " \t\r"); len(line) > 0 {
		s.line(line)
	}
	s.buf, s.skip = s.buf[:0], false
}

// execLog writes the line at start and end of each execution, by which a test
// proves that no two overlapped.
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
	PID     int       `json:"pid"` // of the program; of the daemon for a run within it
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
