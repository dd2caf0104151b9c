package runner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

// lines writes the output of a run of kind llm: the model's text as it comes,
// and between it whole lines on what its tools do. It is safe for use from
// several goroutines.
type lines struct {
	mu   sync.Mutex
	out  io.Writer
	open bool // the last line has no end yet
	told map[string]time.Time
}

// maxLineText bounds a line: names and arguments are the model's.
const maxLineText = 500

func (l *lines) text(delta string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, delta) // an output log never fails
	l.open = !strings.HasSuffix(delta, "\n")
}

// line writes a line of its own.
func (l *lines) line(s string) {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxLineText {
		s = strings.ToValidUTF8(s[:maxLineText], "") + "…"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		s, l.open = "\n"+s, false
	}
	_, _ = io.WriteString(l.out, s+"\n")
}

// end ends the line that is open.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		_, _ = io.WriteString(l.out, "\n")
		l.open = false
	}
}

// often reports whether a word on a call comes too soon after the last one.
func (l *lines) often(call string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.told[call]
	if ok && time.Since(last) < time.Second {
		return true
	}
	if l.told == nil {
		l.told = map[string]time.Time{}
	}
	l.told[call] = time.Now()
	return false
}

// linesHandler makes a line of what the loop and its step limit log. Their
// attributes say again what the text says, but for the error.
type linesHandler struct{ l *lines }

func (h linesHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (h linesHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	if !strings.HasPrefix(text, "[") {
		text = "[signalbox] " + text
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			first, _, _ := strings.Cut(fmt.Sprint(a.Value.Any()), "\n")
			text += ": " + first
		}
		return true
	})
	h.l.line(text)
	return nil
}

func (h linesHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h linesHandler) WithGroup(string) slog.Handler      { return h }
