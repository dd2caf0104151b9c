package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// note prints a line to standard error.
func (a *app) note(format string, args ...any) { a.line.note(clean(fmt.Sprintf(format, args...))) }

// say prints a line of the result. A write error becomes the command's error.
func (a *app) say(format string, args ...any) { a.write(fmt.Sprintf(format, args...) + "\n") }

func (a *app) write(text string) {
	if a.unwritten == nil {
		_, a.unwritten = io.WriteString(a.io.Out, text)
	}
}

// print prints a result as JSON with --json, else with show.
func (a *app) print(v any, show func()) error {
	if a.json {
		return writeJSON(a.io.Out, v)
	}
	show()
	return a.unwritten
}

// printLine prints one item of a stream, as JSON on one line or as text.
func (a *app) printLine(v any, text string) error {
	if a.json {
		return writeLine(a.io.Out, v)
	}
	a.say("%s", text)
	return a.unwritten
}

// table prints sanitized rows in columns.
func (a *app) table(rows [][]string) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				io.WriteString(w, "\t")
			}
			io.WriteString(w, clean(cell))
		}
		io.WriteString(w, "\n")
	}
	_ = w.Flush() // it writes to memory
	a.write(text.String())
}

// nonEmptyRows drops rows whose second cell is empty.
func nonEmptyRows(rows [][]string) [][]string {
	return slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
}

// list prints a table with a row for each item. Without items it prints the note
// none or, if that is empty, only the heading.
func list[T any](a *app, items []T, none string, heading []string, row func(*T) []string) {
	if len(items) == 0 && none != "" {
		a.note("%s", none)
		return
	}
	rows := [][]string{heading}
	for i := range items {
		rows = append(rows, row(&items[i]))
	}
	a.table(rows)
}

// pageEnd says how to see the next page.
func (a *app) pageEnd(next string) {
	if next != "" {
		a.note("There are more: --before %s", next)
	}
}

// lines prints a line for each item of a page and how to see the next one, or the
// note none.
func lines[T any](a *app, items []T, none, next string, line func(T) string) {
	if len(items) == 0 {
		a.note("%s", none)
		return
	}
	for _, item := range items {
		a.say("%s", line(item))
	}
	a.pageEnd(next)
}

// opt formats an optional part of a line: "" for an empty text.
func opt(format, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(format, clean(text))
}

// clean makes untrusted text safe for a line on a terminal: it replaces control
// characters and characters that reorder text.
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

// hostile reports whether a character could control the terminal or disguise
// text.
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

// paint colours a text for standard output, if colours are on.
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

// drawing reports whether a line of standard error can be redrawn.
func (a *app) drawing() bool { return a.io.ErrTTY && !a.dumb() && !a.json }

// dumb reports whether the terminal cannot move its cursor.
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
	case "cancelled", "cancelling", "parked":
		return yellow
	case "working", "dispatching", "running", "started": // running and started are states of tool tasks and activities
		return bold
	}
	return ""
}

func (a *app) state(state string) string { return a.paint(stateColour(state), clean(state)) }

// ago formats a duration in its one or two largest units.
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

// since formats the time since t.
func (a *app) since(t time.Time) string { return ago(a.io.Now().Sub(t)) }

// ageOr is "… ago", or never if t is nil.
func (a *app) ageOr(t *time.Time, never string) string {
	if t == nil {
		return never
	}
	return a.since(*t) + " ago"
}

// elapsed is the time since a start in parentheses, "" if there was none.
func (a *app) elapsed(since *time.Time) string {
	if since == nil {
		return ""
	}
	return " (" + a.since(*since) + ")"
}

// clock formats a time for lists.
func (a *app) clock(t time.Time) string {
	return t.In(a.io.Now().Location()).Format("2006-01-02 15:04:05")
}

func (a *app) formatTimePtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return a.clock(*t)
}

// capitalize makes the first letter upper case.
func capitalize(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

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

// progress is standard error with a last line that is redrawn. A note clears that
// line first. It is safe for concurrent use.
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

// clear removes the drawn line.
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

// drawTask draws the progress of a task that has not ended.
func (w *waiter) drawTask(ctx context.Context, task api.Task) {
	parts := []string{shortID(task.QueueID), running(task, w.io.Now())}
	if task.State == "parked" {
		parts = []string{parts[0], waitingText(task)}
	}
	if task.State == "pending" {
		parts = []string{parts[0], position(task), eta(task.ETA), w.behind(ctx, task)}
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	w.line.draw(strings.Join(parts, " · "), w.io.Columns)
}

// position is the place of a task in its queue, such as "2nd for coder".
func position(task api.Task) string {
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

// eta formats a range in one unit, such as "about 3–9 min".
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

// behind names the task that a task waits for, and how long that has run. It ignores
// errors: this is only progress.
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
			other, _ := w.c.Task(ctx, gate.TaskID)
			return "behind " + shortID(gate.TaskID) + w.elapsed(other.StartedAt)
		}
	}
	return ""
}

// running describes a task that is not pending, and for how long.
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

// TTY is a terminal.
type TTY interface {
	// Raw puts the terminal into raw mode until restore is called.
	Raw() (restore func() error, err error)
	Size() (columns, rows int)
	// Resized receives a value for each change of the size, until ctx ends.
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
	columns, rows, _ = term.GetSize(int(os.Stdout.Fd())) // 0, 0 on an error
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
	case <-ctx.Done(): // the read goes on, but the terminal's echo must be restored
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}
