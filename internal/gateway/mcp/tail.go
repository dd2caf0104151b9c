package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

const (
	tailLines = 5
	tailWidth = 400
)

// tail logs what a program writes to stderr, and keeps its last lines.
type tail struct {
	tap  *tap
	said *budget
	mu   sync.Mutex
	line []byte
	kept []string
}

func newTail(t *tap, said *budget) *tail { return &tail{tap: t, said: said} }

// Write takes what the program writes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; ; {
		part, after, found := bytes.Cut(rest, []byte{'\n'})
		t.line = append(t.line, part[:min(len(part), 4*tailWidth-min(len(t.line), 4*tailWidth))]...)
		if !found {
			return len(p), nil
		}
		t.keep()
		rest = after
	}
}

// keep ends a line. It is masked whole, so that no secret is cut in two.
func (t *tail) keep() {
	text := strings.TrimSpace(printable(t.tap.mask.hide(string(t.line))))
	t.line = t.line[:0]
	if text == "" {
		return
	}
	if len(text) > tailWidth {
		text = text[:tailWidth] + "…"
	}
	if ctx := context.Background(); t.tap.log.Enabled(ctx, slog.LevelDebug) && t.said.take() {
		t.tap.log.Log(ctx, slog.LevelDebug, "a tool server wrote to stderr", "server", t.tap.name, "text", text)
	}
	t.kept = append(t.kept, text)
	if len(t.kept) > tailLines {
		t.kept = t.kept[1:]
	}
}

// last is what it wrote last, on one line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) > 0 {
		t.keep()
	}
	return strings.Join(t.kept, " | ")
}

// printable leaves out what would move a terminal's cursor.
func printable(s string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s), "?")
}
