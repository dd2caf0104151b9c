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
	// closeGrace is how long a program may run on after its stdin closes; termGrace, after
	// SIGTERM.
	closeGrace = 2 * time.Second
	termGrace  = 3 * time.Second
	// outputTimeout bounds the wait for the output of an ended program if a child holds it
	// open.
	outputTimeout = 500 * time.Millisecond
	// aliveInterval is how often remaining children are checked.
	aliveInterval = 15 * time.Second
)

// child is a server process.
type child struct {
	*link
	proc   *proc.Process
	stdin  *os.File
	stderr *tail
	once   sync.Once
	ended  chan struct{} // no process of it is alive, or it cannot be killed
	endErr error
}

// startChild starts the program. The child is the connection to it.
func startChild(s toolconf.Server, t *interceptor, said *logBudget) (*child, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{stdin: ours, stderr: &tail{interceptor: t, said: said}, ended: make(chan struct{})}
	c.link = newLink(t, func() { c.stdin.Close() })
	out := &messageReader{interceptor: t, deliver: c.deliver}
	c.proc, err = proc.Start(proc.Spec{
		Argv: append([]string{s.Command}, s.Args...), Dir: s.Cwd, Env: childEnv(os.Environ(), s.Env),
		Input: theirs, Stdout: out, Stderr: c.stderr,
		Mark: "mcp-" + rand.Text(), Grace: termGrace, Look: aliveInterval, Bound: true, LeaveOrphans: true,
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("the program %q could not be started: %w", s.Command, withoutPath(err))
	}
	go c.writeLoop(func(data []byte) error {
		_, err := c.stdin.Write(append(data, '\n'))
		return err
	})
	go c.watch()
	return c, nil
}

// withoutPath removes the redundant path from an error.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// watch closes the connection once the program has ended.
func (c *child) watch() {
	<-c.proc.Exited()
	t := time.NewTimer(outputTimeout)
	defer t.Stop()
	select {
	case <-c.proc.Drained():
	case <-t.C:
	}
	c.fail(errEnded)
}

var errEnded = errors.New("the program has ended")

// end ends the program and its children, and returns when all are dead.
func (c *child) end() error {
	c.once.Do(func() {
		c.fail(errLinkClosed) // closes stdin
		deadline := time.Now().Add(closeGrace)
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-c.proc.Exited():
			for len(c.proc.Alive()) > 0 && time.Now().Before(deadline) { // its children may end by themselves
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

// reason describes how the program ended, with its last output.
func (c *child) reason(err error) error {
	exit, words := "", c.stderr.last()
	select {
	case <-c.ended:
		e, _ := c.proc.End() // returns how it ended
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

// maxSkipped bounds the skipped part of one message, in bytes.
const maxSkipped = 1 << 30

var errEndless = errors.New("it sent a message without an end")

// messageReader collects one message up to the limit.
type messageReader struct {
	interceptor *interceptor
	deliver     func(jsonrpc.Message)
	buf         []byte
	skipped     *idScanner // not nil: the message exceeds the limit
	failed      bool       // its call has been failed
	skimmed     int64
}

// add appends to the message.
func (g *messageReader) add(p []byte) {
	if g.skipped == nil && len(g.buf)+len(p) <= maxMessage {
		g.buf = append(g.buf, p...)
		return
	}
	if g.skipped == nil {
		g.skipped = &idScanner{}
		g.skipped.feed(g.buf)
		g.buf = nil
	}
	g.skipped.feed(p)
	g.failEarly()
	g.skimmed += int64(len(p))
	if g.skimmed > maxSkipped {
		g.interceptor.bad(errEndless)
	}
}

// failEarly fails the call of an oversized message as soon as its ID is known.
func (g *messageReader) failEarly() {
	id, ok := g.skipped.answers()
	if !ok || g.failed {
		return
	}
	g.failed = true
	if msg := g.interceptor.tooLarge(id); msg != nil {
		g.deliver(msg)
	}
}

// end marks the end of the message.
func (g *messageReader) end() {
	if g.skipped == nil {
		if msg := bytes.TrimSpace(g.buf); len(msg) > 0 {
			g.take(msg)
		}
	} else if !g.failed {
		g.interceptor.log.Warn("a message is larger than 16 MiB and was skipped", "server", g.interceptor.name)
	}
	g.skipped, g.failed, g.skimmed = nil, false, 0
	g.buf = g.buf[:0]
	if cap(g.buf) > 1<<20 {
		g.buf = nil
	}
}

// take passes on a message, or each message of a batch: servers of protocol version
// 2025-03-26 may send batches.
func (g *messageReader) take(data []byte) {
	if data[0] != '[' {
		if msg := g.interceptor.incoming(data); msg != nil {
			g.deliver(msg)
		}
		return
	}
	batch, err := elements(data)
	if err != nil || len(batch) == 0 {
		g.interceptor.skip(data)
		return
	}
	for _, one := range batch {
		if msg := g.interceptor.incoming(one); msg != nil {
			g.deliver(msg)
		}
	}
}

// Write reads the program's output: one message per line.
func (g *messageReader) Write(p []byte) (int, error) {
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

// inheritedVars are the environment variables that a program inherits. It inherits no others,
// above all not Signalbox's tokens; the configuration declares the rest.
var inheritedVars = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

var inheritedPrefixes = []string{"LC_", "XDG_"}

// childEnv returns the environment of a program.
func childEnv(own []string, declared map[string]string) []string {
	var env []string
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		_, set := declared[name]
		if !set && inherited(name) {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		env = append(env, name+"="+declared[name])
	}
	return env
}

func inherited(name string) bool {
	name = proc.VariableName(name)
	return slices.Contains(inheritedVars, name) || slices.Contains(proc.SystemVariables, name) || slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// mask masks a server's secrets in logs and in answers.
type mask struct{ replace *strings.Replacer }

func newMask(s toolconf.Server) *mask {
	var secrets []string
	add := func(v string) {
		if len(v) >= gateway.MinSecret {
			secrets = append(secrets, v)
		}
	}
	for _, v := range s.Secrets { // also secrets inside an argument or a longer text
		add(v)
	}
	for _, v := range s.Env {
		add(v)
	}
	for _, v := range s.Headers {
		add(v)
		if _, token, ok := strings.Cut(v, " "); ok { // for example Bearer …
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
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // longest first, so that the longest match is hidden
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

// tail logs a program's stderr and keeps its last lines.
type tail struct {
	interceptor *interceptor
	said        *logBudget
	mu          sync.Mutex
	line        []byte
	kept        []string
}

// Write receives the program's output.
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

// keep ends a line. The line is masked as a whole, so that no secret is
// split.
func (t *tail) keep() {
	text := strings.TrimSpace(printable(t.interceptor.mask.hide(string(t.line))))
	t.line = t.line[:0]
	if text == "" {
		return
	}
	if len(text) > tailWidth {
		text = text[:tailWidth] + "…"
	}
	if ctx := context.Background(); t.interceptor.log.Enabled(ctx, slog.LevelDebug) && t.said.take() {
		t.interceptor.log.Log(ctx, slog.LevelDebug, "a tool server wrote to stderr", "server", t.interceptor.name, "text", text)
	}
	t.kept = append(t.kept, text)
	if len(t.kept) > tailLines {
		t.kept = t.kept[1:]
	}
}

// last is the last output, on one line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) > 0 {
		t.keep()
	}
	return strings.Join(t.kept, " | ")
}

// printable removes terminal control characters.
func printable(s string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s), "?")
}
