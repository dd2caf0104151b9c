package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const (
	// closeGrace is what a program gets to end by itself once its stdin is
	// closed, termGrace what it gets after SIGTERM.
	closeGrace = 2 * time.Second
	termGrace  = 3 * time.Second
	// lastWords bounds the wait for output of a program that has ended, if
	// something it started holds it open.
	lastWords = 500 * time.Millisecond
	// lookEvery is the time between two looks at what it started.
	lookEvery = 15 * time.Second
)

// child is a server that is a program.
type child struct {
	*link
	proc   *proc.Process
	stdin  *os.File
	stderr *tail
	once   sync.Once
	ended  chan struct{} // nothing of it lives, or cannot be killed
	endErr error
}

// startChild starts the program; the child is a connection to it.
func startChild(s toolconf.Server, t *tap, said *budget) (*child, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{stdin: ours, stderr: &tail{tap: t, said: said}, ended: make(chan struct{})}
	c.link = newLink(t, func() { c.stdin.Close() })
	out := &gather{tap: t, deliver: c.deliver}
	c.proc, err = proc.Start(proc.Spec{
		Argv: append([]string{s.Command}, s.Args...), Dir: s.Cwd, Env: childEnv(os.Environ(), s.Env),
		Input: theirs, Stdout: out, Stderr: c.stderr,
		Mark: "mcp-" + rand.Text(), Grace: termGrace, Look: lookEvery, Bound: true, LeaveOrphans: true,
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("the program %q could not be started: %w", s.Command, bare(err))
	}
	go c.pump(func(data []byte) error {
		_, err := c.stdin.Write(append(data, '\n'))
		return err
	})
	go c.watch()
	return c, nil
}

// bare leaves the path out of an error where it only says the same again.
func bare(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// watch closes the connection when the program has ended.
func (c *child) watch() {
	<-c.proc.Exited()
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-c.proc.Drained():
	case <-t.C:
	}
	c.fail(errEnded)
}

var errEnded = errors.New("the program has ended")

// end ends the program and all it started, and returns when nothing of it
// lives.
func (c *child) end() error {
	c.once.Do(func() {
		c.fail(errLinkClosed) // closes stdin
		deadline := time.Now().Add(closeGrace)
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-c.proc.Exited():
			for len(c.proc.Alive()) > 0 && time.Now().Before(deadline) { // its children, by themselves
				time.Sleep(20 * time.Millisecond)
			}
		case <-t.C:
		}
		_, c.endErr = c.proc.End()
		close(c.ended)
	})
	<-c.ended
	return c.endErr
}

// reason says why the program is of no use: how it ended, and what it said.
func (c *child) reason(err error) error {
	exit, words := "", c.stderr.last()
	select {
	case <-c.ended:
		e, _ := c.proc.End() // answers what it did
		exit = ", " + e.String()
	default:
	}
	if errors.Is(err, errEnded) {
		err = fmt.Errorf("the program has ended%s", exit)
	}
	if words != "" {
		err = fmt.Errorf("%w; it said: %s", err, words)
	}
	return err
}

// maxSkimmed bounds what is read of one message without being kept.
const maxSkimmed = 1 << 30

var errEndless = errors.New("it sent a message without an end")

// gather collects one message, and no more of it than the limit.
type gather struct {
	tap     *tap
	deliver func(jsonrpc.Message)
	buf     []byte
	skim    *scan // not nil: the message is beyond the limit
	told    bool  // the call it answers has been told
	skimmed int64
}

// add takes some more of the message.
func (g *gather) add(p []byte) {
	if g.skim == nil && len(g.buf)+len(p) <= maxMessage {
		g.buf = append(g.buf, p...)
		return
	}
	if g.skim == nil {
		g.skim = &scan{}
		g.skim.feed(g.buf)
		g.buf = nil
	}
	g.skim.feed(p)
	g.tell()
	g.skimmed += int64(len(p))
	if g.skimmed > maxSkimmed {
		g.tap.bad(errEndless)
	}
}

// tell fails the call that the message answers as soon as that is known.
func (g *gather) tell() {
	id, ok := g.skim.answers()
	if !ok || g.told {
		return
	}
	g.told = true
	if msg := g.tap.tooLarge(id); msg != nil {
		g.deliver(msg)
	}
}

// end is the end of the message.
func (g *gather) end() {
	if g.skim == nil {
		if msg := bytes.TrimSpace(g.buf); len(msg) > 0 {
			g.take(msg)
		}
	} else if !g.told {
		g.tap.log.Warn("a message is larger than 16 MiB and was skipped", "server", g.tap.name)
	}
	g.skim, g.told, g.skimmed = nil, false, 0
	g.buf = g.buf[:0]
	if cap(g.buf) > 1<<20 {
		g.buf = nil
	}
}

// take hands a message to the tap, or each of a batch, as servers of protocol
// version 2025-03-26 may send them.
func (g *gather) take(data []byte) {
	if data[0] != '[' {
		if msg := g.tap.incoming(data); msg != nil {
			g.deliver(msg)
		}
		return
	}
	batch, err := elements(data)
	if err != nil || len(batch) == 0 {
		g.tap.skip(data)
		return
	}
	for _, one := range batch {
		if msg := g.tap.incoming(one); msg != nil {
			g.deliver(msg)
		}
	}
}

// Write takes what a program prints: a message each line.
func (g *gather) Write(p []byte) (int, error) {
	rest := p
	for {
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		g.add(line)
		if !found {
			return len(p), nil
		}
		g.end()
		rest = after
	}
}

// passNames are what a program gets of our own environment. Everything else
// stays here, Signalbox's tokens above all; what a server needs is declared.
var passNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

var passPrefixes = []string{"LC_", "XDG_"}

// childEnv makes the environment of a program.
func childEnv(own []string, declared map[string]string) []string {
	var env []string
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		_, set := declared[name]
		if !set && passes(name) {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		env = append(env, name+"="+declared[name])
	}
	return env
}

func passes(name string) bool {
	name = proc.VariableName(name)
	return slices.Contains(passNames, name) || slices.Contains(proc.SystemVariables, name) || slices.ContainsFunc(passPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// mask hides a server's secrets in what is logged and in what callers read.
type mask struct{ replace *strings.Replacer }

func newMask(s toolconf.Server) *mask {
	var secrets []string
	add := func(v string) {
		if len(v) >= gateway.MinSecret {
			secrets = append(secrets, v)
		}
	}
	for _, v := range s.Secrets { // also those within an argument or a longer text
		add(v)
	}
	for _, v := range s.Env {
		add(v)
	}
	for _, v := range s.Headers {
		add(v)
		if _, token, ok := strings.Cut(v, " "); ok { // Bearer …
			add(token)
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		add(u.RawQuery)
		for _, vs := range u.Query() {
			for _, v := range vs {
				add(v)
				add(url.QueryEscape(v))
			}
		}
		if pw, ok := u.User.Password(); ok {
			add(pw)
			add(url.QueryEscape(pw))
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest that fits is hidden
	var pairs []string
	for _, v := range slices.Compact(secrets) {
		pairs = append(pairs, v, "[hidden]")
	}
	return &mask{strings.NewReplacer(pairs...)}
}

func (m *mask) hide(s string) string { return m.replace.Replace(s) }

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
