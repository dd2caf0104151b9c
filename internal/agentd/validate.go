package agentd

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

var (
	sessionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	queueForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	modelForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]*$`)
)

// job is derived from a task and the configuration.
type job struct {
	model   string
	timeout time.Duration
	limit   string // what set the timeout, for messages
	dir     string // folder of the project; "": the slot's own
	place   place  // for a new conversation
	budget  signalbox.Budget
}

// check refuses tasks that cannot be executed as requested. Messages name the
// field.
func (d *Daemon) check(t api.AgentTask) (job, *refusal) {
	j := job{timeout: d.cfg.DefaultTimeout, limit: "this agent's default, agent.timeout"}
	switch {
	case strings.TrimSpace(t.Prompt) == "" && t.Land == nil:
		return j, invalid("prompt is required")
	case strings.ContainsRune(t.Prompt, 0):
		return j, invalid("prompt may not contain NUL characters")
	case t.TimeoutSeconds < 0 || t.TimeoutSeconds > maxTimeout:
		return j, invalid("timeout_seconds is %d: 0 for the agent's default, or up to %d", t.TimeoutSeconds, maxTimeout)
	case t.SessionID != "" && !validSession(t.SessionID):
		return j, invalid("session_id must be 1 to 128 letters, digits, '.', '_' or '-', begin with a letter or digit and not contain '..'")
	case t.Resume != nil && strings.ContainsRune(t.Resume.Text, 0):
		return j, invalid("resume.text may not contain NUL characters")
	case t.Isolated && t.SessionID != "":
		return j, invalid("session_id cannot be used with isolated, which has no conversation")
	case t.Isolated && t.Project != nil && t.Project.Path != "":
		return j, invalid("project.path cannot be used with isolated, which has a working directory of its own")
	case !t.Isolated && len(t.AllowedTools) > 0:
		return j, invalid("allowed_tools needs isolated: a conversation has the tools of its agent")
	case !t.Isolated && t.SystemPrompt != "":
		return j, invalid("system_prompt needs isolated: a conversation has the system prompt that it began with")
	case t.Model != "" && !validModel(t.Model):
		return j, invalid("model is not a model name: letters, digits and . _ : / @ + [ ] -, at most 200")
	case t.QueueID != "" && !validQueueID(t.QueueID):
		return j, invalid("queue_id must be 1 to 200 letters, digits, '.', '_', ':' or '-'")
	case t.Fence < 0 || t.Slot < 0:
		return j, invalid("fence and slot may not be negative")
	case t.Fence > 0 && t.QueueID == "":
		return j, invalid("fence needs a queue_id")
	case len(t.Director) > 200:
		return j, invalid("director may have 200 bytes at most")
	}
	if t.TimeoutSeconds > 0 {
		j.timeout, j.limit = time.Duration(t.TimeoutSeconds)*time.Second, "timeout_seconds of the task"
	}
	if ref := d.checkLand(&t); ref != nil {
		return j, ref
	}
	if ref := checkEnv(t.Env); ref != nil {
		return j, ref
	}
	if ref := d.checkEnvBy(&t); ref != nil {
		return j, ref
	}
	if ref := d.checkTask(&t); ref != nil {
		return j, ref
	}
	if ref := checkHolds(t.Holds); ref != nil {
		return j, ref
	}
	if err := d.runner.CheckExtras(t.AllowedTools, t.SystemPrompt); err != nil {
		return j, invalid("%v", err)
	}
	var err error
	if j.model, err = d.runner.Model(t.Model, t.Tier, d.cfg.Model); err != nil {
		field := "model"
		if t.Model == "" && t.Tier != "" {
			field = "tier"
		}
		return j, invalid("%s: %v", field, err)
	}
	if b := cmp.Or(t.Budget, &api.Budget{}); *b != (api.Budget{}) {
		if j.budget, err = signalbox.ParseBudget("budget", b.USD, b.Tokens); err == nil {
			err = d.runner.CheckBudget(j.budget, j.model)
		}
		if err != nil {
			return j, invalid("%v", err)
		}
	}
	j.dir, err = d.projectDir(t.Project)
	if err != nil {
		return j, invalid("project.path: %v", err)
	}
	var ref *refusal
	j.place, ref = d.placeOf(&t, j.dir)
	return j, ref
}

func validSession(id string) bool {
	return len(id) <= 128 && sessionForm.MatchString(id) && !strings.Contains(id, "..")
}

func validQueueID(id string) bool { return len(id) <= 200 && queueForm.MatchString(id) }

func validModel(name string) bool { return len(name) <= 200 && modelForm.MatchString(name) }

// projectDir resolves the folder of a project including symlinks, and refuses
// a folder outside the allowed roots.
func (d *Daemon) projectDir(p *api.Project) (string, error) {
	if p == nil || p.Path == "" {
		return "", nil
	}
	if strings.ContainsRune(p.Path, 0) {
		return "", fieldError("it may not contain NUL characters")
	}
	path := p.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.cfg.WorkDir, path)
	}
	real, err := realDir(path)
	if err == nil && within(d.cfg.ProjectRoots, real) {
		return real, nil
	}
	// A folder outside of the roots gets the same error as a missing one.
	return "", fieldError("there is no folder " + p.Path + " that this agent may use")
}

func within(roots []string, path string) bool {
	for _, root := range roots {
		rel, err := filepath.Rel(root, path)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(os.PathSeparator)) {
			return true
		}
	}
	return false
}

type fieldError string

func (e fieldError) Error() string { return string(e) }

// preview is the beginning of a prompt on one line, at most 100 characters.
func preview(prompt string) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(prompt, "\uFFFD")), " ")
	if utf8.RuneCountInString(s) > 100 {
		s = string([]rune(s)[:100]) + "…"
	}
	return s
}

const tracerName = "github.com/signalbox-ai/signalbox/internal/agentd"

var w3c propagation.TraceContext

// withTrace takes the trace of a request.
func withTrace(req *http.Request) context.Context {
	return w3c.Extract(req.Context(), propagation.HeaderCarrier(req.Header))
}

// runTrace is the trace of a run. Its span contains neither the prompt nor a
// message.
type runTrace struct {
	caller trace.SpanContext // of the submitter
	span   trace.Span        // nil: there is none
}

// begin starts the span of a run.
func (t *runTrace) begin(r *run) {
	if r.d.tracer == nil {
		return
	}
	rec := r.record()
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), t.caller)
	_, t.span = r.d.tracer.Start(ctx, "execution", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.agent.name", r.d.cfg.Name),
		attribute.String("signalbox.agent.kind", r.d.cfg.Kind),
		attribute.String("signalbox.queue_id", rec.QueueID),
		attribute.String("signalbox.task_id", rec.TaskID),
		attribute.Int64("signalbox.fence", rec.Fence),
		attribute.Int("signalbox.slot", rec.Slot),
		attribute.Bool("signalbox.isolated", rec.Isolated),
	))
}

func (t *runTrace) end(r *run, v *outcome) {
	if t.span == nil {
		return
	}
	t.span.SetAttributes(attribute.String("signalbox.state", v.state))
	if m := r.job.model; m != "" {
		t.span.SetAttributes(attribute.String("gen_ai.request.model", m))
	}
	if v.out.ExitCode != nil {
		t.span.SetAttributes(attribute.Int("process.exit.code", *v.out.ExitCode))
	}
	if u := r.record().TokenUsage; u != nil {
		t.span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", u.Input), attribute.Int64("gen_ai.usage.output_tokens", u.Output))
	}
	if v.errType != "" && v.state != stateCancelled {
		t.span.SetStatus(codes.Error, v.errType)
		t.span.SetAttributes(attribute.String("error.type", v.errType))
	}
	t.span.End()
}

// parent returns the traceparent for a run's program, "": none.
func (t *runTrace) parent() string {
	sc := t.caller
	if t.span != nil {
		sc = t.span.SpanContext()
	}
	if !sc.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}
