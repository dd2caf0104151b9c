package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// LevelVerbose is between debug and info: the events of each tool call. Its lines have VRB, as in the seed
// (tool-queue-manager, step 6).
const LevelVerbose = gateway.LevelVerbose

// ParseLevel parses the name of a level: debug, verbose, info, warn or error.
func ParseLevel(name string) (slog.Level, error) {
	if strings.EqualFold(name, "verbose") {
		return LevelVerbose, nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("there is no log level %q: want debug, verbose, info, warn or error", name)
	}
	return level, nil
}

func levelName(l slog.Level) string {
	if l == LevelVerbose {
		return "VRB"
	}
	return l.String()
}

// NewLogger returns a logger that writes to w. format is "text", the seed's format, or "json", one object per
// line.
func NewLogger(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	switch format {
	case "", "text":
		return slog.New(&textHandler{out: &output{w: w}, level: level}), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: jsonShape})), nil
	}
	return nil, fmt.Errorf("log format must be text or json, not %q", format)
}

// jsonShape formats times like the text format, and omits empty messages.
func jsonShape(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch {
	case a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.String(slog.TimeKey, a.Value.Time().UTC().Format(time.RFC3339))
	case a.Key == slog.LevelKey && a.Value.Any() == LevelVerbose:
		return slog.String(slog.LevelKey, levelName(LevelVerbose))
	case a.Key == slog.MessageKey && a.Value.String() == "":
		return slog.Attr{}
	}
	return a
}

// textHandler writes the seed's lines:
//
//	2025-01-17T10:00:00Z INFO queue=task_added queue_id=queue-abc12345 depth=5 source=scheduler
//
// One record is one line, whatever its values contain: they are quoted if they could be misread, so that no
// prompt or agent can forge a line.
type textHandler struct {
	out    *output
	level  slog.Leveler
	attrs  string // " key=value …" of With
	prefix string // "group." of WithGroup
}

// output is shared by a handler and those derived from it.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool {
	least := slog.LevelInfo
	if h.level != nil {
		least = h.level.Level()
	}
	return level >= least
}

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	b := make([]byte, 0, 256)
	if !r.Time.IsZero() {
		b = r.Time.UTC().AppendFormat(b, time.RFC3339)
		b = append(b, ' ')
	}
	b = append(b, levelName(r.Level)...)
	if r.Message != "" {
		b = append(b, ' ')
		b = append(b, message(r.Message)...)
	}
	b = append(b, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, h.prefix, a)
		return true
	})
	b = append(b, '\n')
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(b)
	return err
}

func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	made := *h
	b := []byte(h.attrs)
	for _, a := range attrs {
		b = appendAttr(b, h.prefix, a)
	}
	made.attrs = string(b)
	return &made
}

func (h *textHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	made := *h
	made.prefix += word(name) + "."
	return &made
}

func appendAttr(b []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return b
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += word(a.Key) + "."
		}
		for _, member := range v.Group() {
			b = appendAttr(b, prefix, member)
		}
		return b
	}
	b = append(b, ' ')
	b = append(b, prefix...)
	b = append(b, word(a.Key)...)
	b = append(b, '=')
	return append(b, text(a.Key, v)...)
}

// text writes a value. The seed quotes errors even if they are one word.
func text(key string, v slog.Value) string {
	var s string
	switch v.Kind() {
	case slog.KindTime:
		s = v.Time().UTC().Format(time.RFC3339Nano)
	default:
		s = v.String()
	}
	if key == "error" || key == "message" || needsQuotes(s) {
		return strconv.Quote(s)
	}
	return s
}

func needsQuotes(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return true
	}
	return strings.ContainsFunc(s, func(r rune) bool {
		return r == '"' || r == '=' || r == '\\' || r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// word converts any string to a key.
func word(s string) string {
	if !needsQuotes(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
}

// message is readable text; it is quoted if it does not fit on one line.
func message(s string) string {
	odd := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}
