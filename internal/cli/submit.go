package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// maxPrompt is the API's limit of a prompt, in bytes.
const maxPrompt = 1 << 20

// submitFlags are the flags of submit.
type submitFlags struct {
	req         api.SubmitRequest
	timeout     durationFlag
	startWithin durationFlag
	notBefore   string
	project     string
	thinking    bool
	env         []string
	key         string
	budget      budgetFlags
	checks      checkFlags
	needs       []string
	room        bool
	wait        waitFlags
}

func (a *app) submitCmd() *cobra.Command {
	var s submitFlags
	cmd := &cobra.Command{
		Use:     "submit PROMPT",
		Aliases: []string{"queue"},
		Short:   "Submit a task to the queue",
		Long: "Submit a task to the queue. PROMPT is one argument, so put it in quotes; - reads it from standard input.\n\n" +
			"With --wait the task's output goes to standard output, its progress to standard error, and the exit code\n" +
			"says how the task ended. Ctrl-C leaves the task alone and says how to come back to it.",
		Example: "  signalbox submit \"review the open pull request\" --agent coder --wait\n" +
			"  git diff | signalbox submit - --model sonnet --timeout 30m",
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectQueueVerb(cmd, args); err != nil {
				return err
			}
			return a.fillRequest(cmd, &s, args[0])
		},
		RunE: a.askRetrying(func(ctx context.Context, c *client.Client, _ []string) error { return a.submit(ctx, c, &s) }),
	}
	s.register(cmd)
	return cmd
}

// queueVerbs maps the verbs that other tools have after the noun queue to the
// commands here.
var queueVerbs = map[string]string{
	"list": "signalbox status", "ls": "signalbox status", "status": "signalbox status", "show": "signalbox status ID", "get": "signalbox status ID",
	"cancel": "signalbox cancel ID", "retry": "signalbox retry ID", "why": "signalbox why ID", "logs": "signalbox logs ID", "history": "signalbox history",
	"pause": "signalbox pause", "resume": "signalbox resume", "clear": "signalbox clear AGENT", "help": "signalbox submit --help",
}

// rejectQueueVerb refuses a verb after signalbox queue, an alias of submit: it is
// hardly meant as a prompt.
func rejectQueueVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.CalledAs() != "queue" {
		return nil
	}
	does, verb := queueVerbs[strings.ToLower(strings.TrimSpace(args[0]))]
	if !verb || len(args) > 2 {
		return nil
	}
	return usage("signalbox queue submits a prompt, and %q is not one: want %s", args[0], does).withHint("if it is a prompt: signalbox submit %q", args[0])
}

func (s *submitFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.req.Agent, "agent", "", "only this `agent` may take it")
	f.StringVar(&s.req.Kind, "kind", "", "only agents of this `kind` may take it; not with --agent")
	f.StringVar(&s.req.Model, "model", "", "`model` to run it with")
	f.StringVar(&s.req.Tier, "tier", "", "`tier` of model to run it with")
	f.Var(&s.timeout, "timeout", "limit of the run, such as 30m (default: the agent's)")
	f.StringVar(&s.req.SessionID, "session", "", "`id` of the conversation to continue")
	f.Var(newChoice(&s.req.Session, "", "require", "prefer"), "session-mode", "whether only the agent that holds the session may take it: require (default) or prefer")
	f.StringVar(&s.project, "project", "", "`folder` on the agent to run in, absolute or relative to its work folder")
	registerPlace(f, &s.req.Workspace, &s.req.Repo, &s.req.Base)
	f.StringArrayVar(&s.env, "env", nil, "variable for the run, `NAME=VALUE`, or NAME to take it from here; repeatable")
	f.BoolVar(&s.thinking, "thinking", false, "let the model think, or not with --thinking=false (default: the agent's)")
	f.IntVar(&s.req.Priority, "priority", 0, "`number` from -10 to 10; each step overtakes tasks submitted up to a minute before")
	f.StringVar(&s.notBefore, "not-before", "", "earliest start: a `time` in RFC 3339, or a duration from now")
	f.Var(&s.startWithin, "start-within", "time the task out if it has not started after this long (default: it waits for ever)")
	f.Var(newChoice(&s.req.OnLost, "", "fail", "requeue"), "on-lost", "what happens to the task when its agent is lost: fail or requeue (default: queue.on_lost of the director, fail)")
	f.Var(newChoice(&s.req.Overflow, "", "reject", "wait", "persist"), "overflow", "what to do if no agent is free for it: persist (wait in the backlog, default), wait (for 2m, or --start-within) or reject")
	s.budget.register(cmd)
	s.checks.register(f)
	f.StringArrayVar(&s.needs, "need", nil, "`NAME[=N]`: units of a resource of signalbox resources that the run holds (default 1); repeatable")
	registerLand(f, &s.req.Land, &s.req.LandMethod, &s.req.FastForward)
	f.StringVar(&s.req.SourceJob, "source-job", "", "`name` of the job that submits the task")
	f.StringVar(&s.key, "idempotency-key", "", "make at most one task per `key` (default: a new key)")
	f.BoolVar(&s.room, "wait-for-room", false, "wait instead of failing when the queue is full")
	s.wait.register(cmd)
}

// fillRequest builds the request from arguments and flags.
func (a *app) fillRequest(cmd *cobra.Command, s *submitFlags, prompt string) (err error) {
	if s.req.Prompt, err = a.prompt(prompt); err != nil {
		return err
	}
	if s.req.Agent != "" && s.req.Kind != "" {
		return usage("--agent and --kind exclude each other: an agent has a kind")
	}
	if err := checkPriority(s.req.Priority); err != nil {
		return err
	}
	if s.wait.limit != 0 && !s.wait.on && !s.room {
		return usage("--wait-timeout limits a wait: it needs --wait or --wait-for-room")
	}
	if cmd.Flags().Changed("thinking") {
		s.req.Thinking = &s.thinking
	}
	if s.notBefore != "" {
		at, err := parseTime(s.notBefore, a.io.Now())
		if err != nil {
			return usage("--not-before: %s, got %q", err, s.notBefore)
		}
		s.req.NotBefore = &at
	}
	if s.req.Budget, err = s.budget.given(cmd); err != nil {
		return err
	}
	if err := s.checks.fill(cmd.Flags(), &s.req.Checks, &s.req.CheckRetries); err != nil {
		return err
	}
	if s.req.Needs, err = needsOf(s.needs); err != nil {
		return err
	}
	s.req.Project = projectAt(s.project)
	s.req.TimeoutSeconds, s.req.WaitTimeout = s.timeout.seconds(), s.startWithin.seconds()
	s.req.Source = "cli"
	s.req.Env, err = a.taskEnv(s.env)
	return err
}

func (a *app) prompt(arg string) (string, error) {
	if arg == "-" {
		data, err := io.ReadAll(io.LimitReader(a.io.In, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("read the prompt from standard input: %w", err)
		}
		if len(data) > maxPrompt {
			return "", usage("the prompt on standard input is larger than %d bytes", maxPrompt)
		}
		arg = string(data)
	}
	switch {
	case strings.TrimSpace(arg) == "":
		return "", usage("the prompt is empty")
	case !utf8.ValidString(arg):
		return "", usage("the prompt is not valid UTF-8").withHint("convert it first, such as with iconv -f LATIN1 -t UTF-8")
	}
	return arg, nil
}

// taskEnv returns the variables of a run from NAME=VALUE and NAME.
func (a *app) taskEnv(pairs []string) (map[string]string, error) {
	var env map[string]string
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		if name == "" {
			return nil, usage("--env: want NAME=VALUE or NAME") // the value may be a secret
		}
		if !given {
			var ok bool
			if value, ok = a.io.Env(name); !ok {
				return nil, usage("--env %s: it is not set here", clean(name)).withHint("give it as %s=VALUE", clean(name))
			}
		}
		if env == nil {
			env = map[string]string{}
		}
		env[name] = value
	}
	return env, nil
}

// submit submits the task and, with --wait, waits for it.
func (a *app) submit(ctx context.Context, c *client.Client, s *submitFlags) error {
	if err := a.checkKind(ctx, c, "--kind", s.req.Kind); err != nil {
		return err
	}
	if s.key == "" {
		s.key = client.NewIdempotencyKey() // the same for all attempts
	}
	// The director rejects a wait that would deadlock. Only a command inside a run sends
	// the field: all others also work with directors that do not know it.
	s.req.Waits = s.wait.on && a.executionID() != ""
	wait, cancel := s.wait.bound(ctx)
	defer cancel()
	job, err := a.submitWithRoom(wait, c, s)
	if err != nil {
		return a.notSubmitted(ctx, s, err)
	}
	return a.submitted(ctx, wait, c, job, s.wait.on)
}

func (a *app) submitWithRoom(ctx context.Context, c *client.Client, s *submitFlags) (api.SubmitResponse, error) {
	for try := 0; ; try++ {
		job, err := c.Submit(ctx, s.req, client.SubmitOptions{IdempotencyKey: s.key, Execution: a.executionID()})
		var e *client.Error
		if !s.room || !errors.As(err, &e) || e.Body.Error != "queue_full" {
			return job, err
		}
		if try == 0 {
			a.note("%s: waiting for room", apiFault(e).message)
		}
		select {
		case <-a.io.After(roomDelay(try, e.Body.RetryAfter)):
		case <-ctx.Done():
			return job, context.Cause(ctx)
		}
	}
}

// roomDelay is the time until the next attempt: a backoff up to 5 seconds, or the
// director's Retry-After if that is shorter.
func roomDelay(try, advised int) time.Duration {
	delay := min(time.Duration(try+1)*500*time.Millisecond, 5*time.Second)
	if advised > 0 {
		delay = min(delay, time.Duration(advised)*time.Second)
	}
	return delay
}

// notSubmitted is the error of a submit that got no answer.
func (a *app) notSubmitted(ctx context.Context, s *submitFlags, err error) error {
	switch {
	case errors.Is(err, errWaitOver):
		return failure(exitWaitOver, "wait_over", "no room in the queue after %s: the task was not submitted", time.Duration(s.wait.limit)).again(storedHint, s.key)
	case ctx.Err() != nil:
		return failure(exitDetached, "interrupted", "interrupted before the director answered").again(storedHint, s.key)
	}
	return err
}

// submitted prints the result of a submit or retry, or waits for the task.
func (a *app) submitted(ctx, wait context.Context, c *client.Client, job api.SubmitResponse, stay bool) error {
	if job.Replayed {
		a.note("This idempotency key was used before: this is the task that was made then.")
	}
	if job.Message != "" {
		a.note("%s", clean(job.Message))
	}
	if !stay {
		return a.print(job, func() { a.say("%s", queuedLine(job)) })
	}
	a.note("%s", queuedLine(job))
	if job.Queue == signalbox.QueueCommands || job.Queue == signalbox.QueueCalls {
		return a.waitForTool(ctx, wait, c, api.ToolTask{ID: job.QueueID, State: job.State})
	}
	return a.wait(ctx, wait, c, job)
}

// queuedLine is the line for a submitted task. Scripts depend on its form.
func queuedLine(job api.SubmitResponse) string {
	place := fmt.Sprintf("position %d", job.Position)
	switch {
	case job.State != "" && job.State != "pending":
		place = clean(job.State)
	case job.PositionApproximate:
		place = fmt.Sprintf("position about %d", job.Position)
	}
	return fmt.Sprintf("Queued: %s (%s)", clean(job.QueueID), place)
}

// ownKinds are the built-in kinds of agents. Tasks may wait for an agent of such a
// kind before there is one.
var ownKinds = []string{"claude", "codex", "opencode", "command", "llm", "demo"}

// listAgents lists the agents. It returns false if that is not allowed; then the
// director checks names.
func listAgents(ctx context.Context, c *client.Client) ([]api.Agent, bool) {
	all, err := c.AgentsAndExecutors(ctx)
	return all.Agents, err == nil
}

// checkKind rejects a misspelt kind, for which a task would wait for ever. For a kind
// that is only unknown it prints a note.
func (a *app) checkKind(ctx context.Context, c *client.Client, flag, kind string) error {
	if kind == "" || slices.Contains(ownKinds, kind) {
		return nil
	}
	agents, ok := listAgents(ctx, c)
	known := slices.Clone(ownKinds)
	for _, g := range agents {
		known = append(known, g.Kind)
	}
	if !ok || slices.Contains(known, kind) {
		return nil
	}
	if near := signalbox.Nearest(kind, known); near != "" {
		return usage("%s: no agent is of kind %q; did you mean %s?", flag, kind, near)
	}
	if !a.json {
		a.note("No agent is of kind %s yet: tasks for it wait until one registers.", kind)
	}
	return nil
}

// checkAgent rejects the name of an unknown agent.
func (a *app) checkAgent(ctx context.Context, c *client.Client, what, name string) error {
	agents, ok := listAgents(ctx, c)
	names := agentNamesOf(agents)
	if !ok || slices.Contains(names, name) {
		return nil
	}
	f := usage("%s: there is no agent %q", what, name)
	if near := signalbox.Nearest(name, names); near != "" {
		return f.withHint("did you mean %s?", near)
	}
	return f.withHint("signalbox agents lists them")
}

// checkQueue rejects a queue of an unknown agent or a misspelt kind.
func (a *app) checkQueue(ctx context.Context, c *client.Client, queue string) error {
	if name, ok := strings.CutPrefix(queue, "agent:"); ok {
		return a.checkAgent(ctx, c, queue, name)
	}
	if kind, ok := strings.CutPrefix(queue, "pool:"); ok {
		return a.checkKind(ctx, c, queue, kind)
	}
	return nil
}

// noteUnknownAgents prints a note for each agent of a token that is not registered
// yet. That is no error.
func (a *app) noteUnknownAgents(ctx context.Context, c *client.Client, names ...string) {
	agents, ok := listAgents(ctx, c)
	known := agentNamesOf(agents)
	for _, name := range names {
		if ok && !a.json && name != "" && !slices.Contains(known, name) {
			a.note("No agent is named %s yet%s.", name, opt(" (did you mean %s?)", signalbox.Nearest(name, known)))
		}
	}
}

func agentNamesOf(agents []api.Agent) []string {
	names := make([]string, len(agents))
	for i, g := range agents {
		names[i] = g.Name
	}
	return names
}

// confirmAtTerminal asks for confirmation at a terminal. In a script, or with
// --yes, it does not ask.
func (a *app) confirmAtTerminal(ctx context.Context, yes bool, question string) error {
	if yes || !a.io.InTTY || !a.io.ErrTTY {
		return nil
	}
	return a.confirm(ctx, question)
}
