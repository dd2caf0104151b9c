package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// note writes a line for people to standard error.
func (a *app) note(format string, args ...any) { a.line.note(clean(fmt.Sprintf(format, args...))) }

// say writes a line of the result.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintf(a.io.Out, format+"\n", args...)
	return err
}

// put writes a line of a result that has more. What keeps it from being written
// is returned by print.
func (a *app) put(format string, args ...any) {
	if a.unwritten == nil {
		a.unwritten = a.say(format, args...)
	}
}

// print writes a result as JSON where that is wanted, else as f does.
func (a *app) print(v any, f func() error) error {
	if a.json {
		return writeJSON(a.io.Out, v)
	}
	err := f()
	if a.unwritten != nil {
		return a.unwritten
	}
	return err
}

// pageEnd says, behind the lines of a page, that there are none, or how to see
// more.
func (a *app) pageEnd(n int, none, next string) error {
	switch {
	case n == 0:
		a.note("%s", none)
	case next != "":
		a.note("There are more: --before %s", next)
	}
	return nil
}

// clean makes a foreign text safe for a line on a terminal: no control
// character, none that reorders text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if hostile(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// cleanLines is clean for a text of several lines.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// hostile reports whether a character could move the cursor, change what
// stands elsewhere, or show a text other than it is.
func hostile(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// Colours, by their SGR numbers.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colours a text for standard output, where colours are wanted.
func (a *app) paint(sgr, text string) string {
	if sgr == "" || !a.colours() {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (a *app) colours() bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	none, _ := a.io.Env("NO_COLOR")
	return a.io.OutTTY && none == "" && !a.dumb()
}

// dumb reports that the terminal cannot move its cursor.
func (a *app) dumb() bool {
	kind, ok := a.io.Env("TERM")
	return ok && kind == "dumb"
}

func stateColour(state string) string {
	switch state {
	case "completed":
		return green
	case "failed", "timeout":
		return red
	case "cancelled", "cancelling":
		return yellow
	case "working", "dispatching":
		return bold
	}
	return ""
}

func (a *app) state(state string) string { return a.paint(stateColour(state), clean(state)) }

// ago is a length of time as people say it, in its one or two largest units.
func ago(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60), " 0 min")
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// clock is a moment as lists show it.
func (a *app) clock(t time.Time) string {
	return t.In(a.io.Now().Location()).Format("2006-01-02 15:04:05")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// progress is standard error while its last line is written over and over.
// Notes that come in between, from whichever goroutine, make it go first.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	drawn bool
}

const clearLine = "\r\x1b[K"

func (p *progress) draw(text string, columns int) {
	const usual = 80
	if columns <= 0 {
		columns = usual
	}
	runes := []rune(clean(text))
	if len(runes) >= columns {
		runes = append(runes[:max(0, columns-2)], '…')
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.w, clearLine+string(runes))
	p.drawn = true
}

// clear makes way for other lines.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
}

func (p *progress) clearLocked() {
	if p.drawn {
		fmt.Fprint(p.w, clearLine)
		p.drawn = false
	}
}

func (p *progress) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLocked()
	fmt.Fprintln(p.w, text)
}

// drawTask draws the line for a task that has not ended.
func (w *waiter) drawTask(ctx context.Context, task api.Task) {
	parts := []string{shortID(task.QueueID)}
	if task.State == "pending" {
		parts = append(parts, place(task), eta(task.ETA), w.behind(ctx, task))
	} else {
		parts = append(parts, running(task, w.io.Now()))
	}
	w.line.draw(joinParts(parts), w.io.Columns)
}

func joinParts(parts []string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, " · ")
}

// place says where in which line a task waits, such as "2nd for coder".
func place(task api.Task) string {
	if task.Position <= 0 {
		return "waiting"
	}
	about := ""
	if task.PositionApproximate {
		about = "about "
	}
	return about + ordinal(task.Position) + " for " + whoServes(task.Queue)
}

func whoServes(queue string) string {
	if name, ok := signalbox.QueueAgent(queue); ok {
		return name
	}
	if kind, ok := signalbox.QueueKind(queue); ok {
		return "any " + kind
	}
	if queue == signalbox.QueueCommands || queue == signalbox.QueueCalls {
		return queue
	}
	return "any agent"
}

// eta is a range in its larger end's unit, such as "about 3–9 min".
func eta(e *api.ETA) string {
	if e == nil {
		return ""
	}
	unit, size := "s", 1.0
	switch {
	case e.HighSeconds >= 2*3600:
		unit, size = "h", 3600
	case e.HighSeconds >= 120:
		unit, size = "min", 60
	}
	low, high := int(e.LowSeconds/size+0.5), int(e.HighSeconds/size+0.5)
	if low >= high {
		return fmt.Sprintf("about %d %s", high, unit)
	}
	return fmt.Sprintf("about %d–%d %s", low, high, unit)
}

// behind names the task that is in the way and how long it has run. What
// cannot be had is left out: it is only a line of progress.
func (w *waiter) behind(ctx context.Context, task api.Task) string {
	why, err := w.c.Why(ctx, task.QueueID)
	if err != nil {
		return ""
	}
	for _, gate := range why.Gates {
		switch {
		case gate.OK:
		case gate.TaskID == "":
			return gate.Text
		default:
			text := "behind " + shortID(gate.TaskID)
			if other, err := w.c.Task(ctx, gate.TaskID); err == nil && other.StartedAt != nil {
				text += " (" + ago(w.io.Now().Sub(*other.StartedAt)) + ")"
			}
			return text
		}
	}
	return ""
}

// running says what a task that is not waiting does, and for how long.
func running(task api.Task, now time.Time) string {
	text, since := task.State, task.StartedAt
	switch {
	case task.State == "dispatching" && signalbox.IsExecutor(task.Agent):
		since = task.DispatchedAt
	case task.State == "dispatching":
		text, since = "dispatching to "+task.Agent, task.DispatchedAt
	case task.State == "working" && !signalbox.IsExecutor(task.Agent):
		text = "working on " + task.Agent
	}
	if since != nil {
		text += " · " + ago(now.Sub(*since))
	}
	return text
}

// TTY is a person's terminal.
type TTY interface {
	// Raw hands every key on as it is, until restore is called.
	Raw() (restore func() error, err error)
	Size() (columns, rows int)
	// Resized says when the size has changed, until ctx ends.
	Resized(ctx context.Context) <-chan os.Signal
	// Password reads a line without showing it, until ctx ends.
	Password(ctx context.Context, prompt string) (string, error)
}

// systemTTY is the terminal of the process.
type systemTTY struct{}

func (systemTTY) Raw() (func() error, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	return func() error { return term.Restore(fd, before) }, err
}

func (systemTTY) Size() (columns, rows int) {
	columns, rows, _ = term.GetSize(int(os.Stdout.Fd())) // 0, 0 is for the other side to judge
	return columns, rows
}

func (systemTTY) Resized(ctx context.Context) <-chan os.Signal {
	resized := make(chan os.Signal, 1)
	notifyResized(ctx, resized)
	return resized
}

func (systemTTY) Password(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case got := <-read:
		return string(got.text), got.err
	case <-ctx.Done(): // Ctrl-C ends no read: it must not leave a terminal that shows nothing
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}
