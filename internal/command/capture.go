package command

import (
	"bytes"
	"sync"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/mask"
)

// capture takes both outputs of a run.
type capture struct {
	out, err stream

	mu      sync.Mutex // the outputs come from two goroutines, the log hears of one at a time
	log     func(stream string, text []byte)
	left    int64         // bytes that may still be printed
	flooded bool          // more was
	flood   chan struct{} // closed with it
}

// stream is one output.
type stream struct {
	to    *capture
	name  string
	mask  *mask.Masker
	clean cleaner
	kept  []byte
	full  bool // more was printed than is kept
}

func newCapture(hide []mask.Pattern, limit int64, log func(string, []byte)) *capture {
	c := &capture{log: log, left: limit, flood: make(chan struct{})}
	c.out = stream{to: c, name: "stdout", mask: mask.New(hide)}
	c.err = stream{to: c, name: "stderr", mask: mask.New(hide)}
	return c
}

// Write never fails: the program is to be ended by its limit and not by a pipe
// that nobody reads.
func (s *stream) Write(b []byte) (int, error) {
	c, n := s.to, len(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flooded {
		return n, nil
	}
	if int64(n) > c.left {
		b, c.flooded = b[:c.left], true
		close(c.flood)
	}
	c.left -= int64(len(b))
	s.take(s.mask.Feed(b, false), false)
	return n, nil
}

// end takes what was held back. Nobody writes any more.
func (c *capture) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range []*stream{&c.out, &c.err} {
		s.take(s.mask.End(), true)
	}
}

func (s *stream) take(masked []byte, last bool) {
	text := s.clean.feed(masked, last)
	if len(text) == 0 {
		return
	}
	s.keep(text)
	if s.to.log != nil {
		s.to.log(s.name, text)
	}
}

// keep keeps the beginning, to the end of a character.
func (s *stream) keep(text []byte) {
	room := KeptOutput - len(s.kept)
	if s.full {
		return
	}
	if s.full = len(text) > room; s.full {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
	}
	s.kept = append(s.kept, text...)
}

// cleaner makes valid UTF-8 of bytes that come in pieces: U+FFFD stands for
// those that are none. A character that arrives in two pieces is whole.
type cleaner struct{ part []byte }

// feed returns what is text by now; last says that nothing follows. What it
// returns stands until the next call.
func (c *cleaner) feed(b []byte, last bool) []byte {
	if len(c.part) > 0 {
		b = append(c.part, b...)
		c.part = nil
	}
	if !last {
		if n := begun(b); n > 0 {
			c.part = bytes.Clone(b[len(b)-n:])
			b = b[:len(b)-n]
		}
	}
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// begun is the number of bytes at the end that are the beginning of a character.
func begun(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
