package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// llmRun is one run of kind llm.
type llmRun struct {
	trouble
	refusedAt *time.Time // when the endpoint allows the next request, according to its last answer; nil: not given

	o         LLM
	task      Task
	model     llm.Model
	transport *http.Transport
	tools     *startingTools // nil: none
	without   string         // reason for having none, if it should be reported
	lines     *lines

	store *llm.Store // nil: the run has no conversation
	past  []llm.Message
	said  []llm.Message // by this run so far
	uses  int64         // number of tool calls
	stop  func()        // ends the run before the next request or tool call
}

func (r *llmRun) emit(format string, args ...any) {
	r.lines.line("[signalbox] " + fmt.Sprintf(format, args...))
}

// progress shows the progress of a tool call, such as its position in the
// queue.
func (r *llmRun) progress(c llm.ToolCall, text string) {
	if !r.lines.tooSoon(c.ID) {
		r.lines.line(fmt.Sprintf("[%s] %s (ID: %s)", c.Name, text, c.ID))
	}
}

// run runs the task to its end. An internal error becomes an outcome and never
// crashes the agent with all its runs.
func (r *llmRun) run(ctx context.Context, out io.Writer) (o Outcome) {
	r.lines = &lines{out: out}
	defer r.transport.CloseIdleConnections()
	if r.tools != nil {
		defer r.tools.set.Close()
	}
	defer func() {
		if v := recover(); v != nil {
			r.emit("panic: %v\n%s", v, debug.Stack())
			o.ErrType, o.ErrMessage = "no_result", fmt.Sprintf("the run failed in a way that it was not made for: %v", v)
		}
	}()
	if err := r.open(); err != nil {
		return Outcome{ErrType: "storage_error", ErrMessage: err.Error()}
	}
	if r.without != "" {
		r.emit(noToolsText, r.without)
	}
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	res, err := r.loop().Run(ctx, llm.Input{
		Model: r.task.Model, System: r.system(), MaxTokens: r.o.MaxTokens, History: r.past, Prompt: r.task.Prompt,
	})
	r.lines.end()
	o = r.outcome(res, err)
	if err := r.close(res); err != nil {
		r.emit("%v", err)
		o.ErrType = cmp.Or(o.ErrType, "storage_error")
		o.ErrMessage = cmp.Or(o.ErrMessage, "the task was carried out, but "+err.Error())
	}
	return o
}

func (r *llmRun) loop() *llm.Loop {
	log := slog.New(linesHandler{r.lines})
	l := &llm.Loop{
		Model: r.model, MaxTurns: r.o.MaxTurns, Logger: log,
		Limit: steplimit.Options{
			MaxFunc: r.o.Steps.begin, Hooks: r.o.Steps.hooks(), Policy: steplimit.Policy(r.o.OverLimit),
			Exempt: called(r.o.Exempt), NeedsApproval: called(r.o.Approval),
		},
		Events: llm.Events{
			Text:      func(_ int, delta string) { r.lines.text(delta) },
			TurnEnded: r.turnEnded,
			ToolEnded: r.toolEnded,
		},
	}
	if r.tools != nil {
		l.Tools = r.tools
	}
	return l
}

func (r *llmRun) system() string {
	if r.o.System != "" && r.task.SystemPrompt != "" {
		return r.o.System + "\n\n" + r.task.SystemPrompt
	}
	return r.o.System + r.task.SystemPrompt
}

// open reads the conversation that the run continues, and adds the prompt.
func (r *llmRun) open() error {
	r.said = []llm.Message{{Role: llm.RoleUser, Text: r.task.Prompt}}
	if r.task.CLISession == "" {
		return nil
	}
	var err error
	if r.store, err = conversations(r.task.Home); err != nil {
		return err
	}
	r.past, err = r.store.Load(r.task.CLISession)
	if damaged, ok := errors.AsType[*llm.CorruptError](err); ok {
		r.emit("%v", damaged)
	} else if err != nil {
		return err
	}
	return r.save()
}

// save stores the conversation so far, so that it survives a crash of the agent.
// Calls in flight then have no answer; the next run repairs that.
func (r *llmRun) save() error {
	if r.store == nil {
		return nil
	}
	return r.store.Save(r.task.CLISession, append(r.past[:len(r.past):len(r.past)], r.said...))
}

// turnEnded stores the model's answer before its tool calls run, unless the budget for the
// next request is used up.
func (r *llmRun) turnEnded(n int, t llm.Turn, _ llm.Usage) {
	r.lines.end()
	said := t.Message.Text != "" || len(t.Message.ToolCalls) > 0
	if said {
		r.said = append(r.said, t.Message)
		r.answered()
	}
	if said || t.InputTokens+t.OutputTokens > 0 {
		read, wrote := count(t.CacheReadTokens), count(t.CacheWriteTokens)
		r.spent(strconv.Itoa(n), "", tokens{count(t.InputTokens) - read - wrote, read, wrote, count(t.OutputTokens)}, 0)
	}
	if len(t.Message.ToolCalls) > 0 {
		if r.asks(); r.hopeless {
			r.stop()
		}
	}
	r.tell()
	if !said {
		return
	}
	if err := r.save(); err != nil {
		r.emit("%v", err) // the end of the run shows whether it matters
	}
}

func (r *llmRun) toolEnded(_ int, e steplimit.Result) {
	r.said = append(r.said, llm.Message{Role: llm.RoleTool, ToolID: e.Call.ID, ToolName: e.Call.Name, Text: e.Text, IsError: e.IsError})
	if e.Outcome != steplimit.Executed && e.Outcome != steplimit.Failed {
		return
	}
	r.uses++
	if err := r.save(); err != nil { // otherwise a completed call would count as aborted after a crash
		r.emit("%v", err)
	}
}

// close stores the conversation. A run that failed before the model answered
// leaves the conversation as it was, so that it can be retried.
func (r *llmRun) close(res llm.Outcome) error {
	switch {
	case r.store == nil:
		return nil
	case res.End != llm.Failed || len(r.said) > 1:
		return r.store.Save(r.task.CLISession, res.Messages)
	case len(r.past) > 0:
		return r.store.Save(r.task.CLISession, r.past)
	}
	return r.store.Remove(r.task.CLISession)
}

// outcome returns how the run ended.
func (r *llmRun) outcome(res llm.Outcome, err error) Outcome {
	o := Outcome{Output: res.Text, ToolCount: r.uses}
	var model *llm.ModelError
	var list *listError
	switch res.End {
	case llm.Completed:
	case llm.MaxTurns:
		o.ErrType = "max_turns"
		o.ErrMessage = fmt.Sprintf("the model was not done after its %d turns (agent.llm.max_turns)", res.Turns)
	case llm.MaxTokens:
		o.ErrType = "max_tokens"
		o.ErrMessage = fmt.Sprintf("the model's answer was cut off at its limit of %d tokens (agent.llm.max_tokens)", r.o.MaxTokens)
	case llm.Refused:
		o.ErrType, o.ErrMessage = "refusal", "the model, or its vendor's filter, would not answer"
		if res.Text != "" {
			o.ErrMessage += ": " + oneLine(res.Text, 500)
		}
	case llm.Aborted: // whoever ended the run has the reason
		if r.hopeless {
			o.ErrType, o.ErrMessage = r.heard.ErrType, r.text
		}
	default:
		o.ErrType, o.ErrMessage = "tools_error", fmt.Sprint(err)
		if errors.As(err, &model) {
			return r.modelFailure(model, o)
		}
		if r.tools != nil && !errors.As(err, &list) {
			o.ErrMessage += "; " + toolsHint(err)
		}
	}
	return o
}

// lines writes the output of a run of kind llm: the model's text as it
// arrives, and in between whole lines about tool calls. It is safe for
// concurrent use.
type lines struct {
	mu   sync.Mutex
	out  io.Writer
	open bool // the last line has no end yet
	told map[string]time.Time
}

// maxLineText bounds a line, in bytes: names and arguments come from the
// model.
const maxLineText = 500

func (l *lines) text(delta string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, delta) // an output log never fails
	l.open = !strings.HasSuffix(delta, "\n")
}

// line writes a separate line.
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

// end ends an open line.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		_, _ = io.WriteString(l.out, "\n")
		l.open = false
	}
}

// tooSoon reports whether a message about a call follows the last one too
// quickly.
func (l *lines) tooSoon(call string) bool {
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

// linesHandler turns log records of the loop and its step limit into lines.
// It omits their attributes, which repeat the text, except for the error.
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
