package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// chatFlags are the flags of chat.
type chatFlags struct {
	agent   string
	req     api.ChatRequest
	timeout durationFlag
	env     []string
	project string
	key     string

	noWait, persist   bool
	startWithin       durationFlag
	waitTimeout       durationFlag
	wait              bool
	async, follow     bool
	cancelOnInterrupt bool

	bypass       bool
	allowedTools []string
	systemPrompt string
}

func (a *app) chatCmd() *cobra.Command {
	var s chatFlags
	cmd := &cobra.Command{
		Use:   "chat AGENT [MESSAGE]",
		Short: "Send a message to an agent and print its answer",
		Long: "Send a message to an agent, wait in its line and print the answer. The message continues the agent's current\n" +
			"conversation. MESSAGE is one argument, so put it in quotes; - or none reads it from standard input.\n\n" +
			"The answer goes to standard output, the place in line to standard error, and the exit code says how the task\n" +
			"ended. Ctrl-C leaves the task alone and says how to come back to it. Inside a run of an agent the command calls\n" +
			"as that agent, for that run (SIGNALBOX_TOKEN and SIGNALBOX_QUEUE_ID are set there).",
		Example: "  signalbox chat coder \"and now the tests\"\n" +
			"  git diff | signalbox chat reviewer --new --follow\n" +
			"  signalbox chat coder --bypass \"is this name taken?\"",
		PreRunE:           func(_ *cobra.Command, args []string) error { return a.fillChat(&s, args) },
		RunE:              a.askRetrying(func(ctx context.Context, c *client.Client, _ []string) error { return a.chat(ctx, c, &s) }),
		ValidArgsFunction: a.completeArg(agentNames),
	}
	s.register(cmd)
	return cmd
}

func (s *chatFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.req.NewSession, "new", false, "start a new conversation, which becomes the agent's current one")
	f.StringVar(&s.req.SessionID, "session", "", "`id` of the conversation to continue (default: the agent's current one)")
	f.StringVar(&s.req.Model, "model", "", "`model` to run it with")
	f.StringVar(&s.req.Tier, "tier", "", "`tier` of model to run it with")
	f.Var(&s.timeout, "timeout", "limit of the run, such as 30m (default: the agent's; with --bypass 5m)")
	f.StringVar(&s.project, "project", "", "`folder` on the agent to run in, absolute or relative to its work folder")
	f.IntVar(&s.req.Priority, "priority", 0, "`number` from -10 to 10; each step overtakes tasks submitted up to a minute before")
	f.StringArrayVar(&s.env, "env", nil, "variable for the run, `NAME=VALUE`, or NAME to take it from here; repeatable")
	f.BoolVar(&s.noWait, "no-wait", false, "fail when the agent is busy, instead of waiting")
	f.BoolVar(&s.persist, "persist", false, "wait in the backlog for as long as it takes, even if the agent's own line is full")
	f.Var(&s.startWithin, "start-within", "time the task out if it has not started after this long (default: 2m; with --persist never)")
	f.Var(&s.waitTimeout, "wait-timeout", "how long to wait here; the task goes on (default: without limit)")
	f.BoolVar(&s.wait, "wait", true, "wait for the answer; --wait=false is --async")
	f.BoolVar(&s.async, "async", false, "do not wait: print the task's id")
	f.BoolVarP(&s.follow, "follow", "f", false, "print the output as it is written; with --json one event per line")
	f.BoolVar(&s.cancelOnInterrupt, "cancel-on-interrupt", false, "let Ctrl-C cancel the task instead of leaving it alone")
	f.StringVar(&s.key, "idempotency-key", "", "make at most one task per `key` (default: a new key)")
	f.BoolVar(&s.bypass, "bypass", false, "run it outside the agent's line, isolated and without a conversation: at once or not at all")
	f.StringSliceVar(&s.allowedTools, "allowed-tools", nil, "`tools` that the run may use, separated by commas; with --bypass")
	f.StringVar(&s.systemPrompt, "system-prompt", "", "`text` to put before the message; with --bypass")
}

// fillChat builds the request from arguments and flags.
func (a *app) fillChat(s *chatFlags, args []string) (err error) {
	s.agent = args[0]
	s.async = s.async || !s.wait
	if s.req.Message, err = a.message(args[1:]); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	switch {
	case s.noWait:
		s.req.Overflow = "reject"
	case s.persist:
		s.req.Overflow = "persist"
	}
	if s.key == "" {
		s.key = client.NewIdempotencyKey()
	}
	s.req.Project = projectAt(s.project)
	s.req.TimeoutSeconds, s.req.WaitTimeout = s.timeout.seconds(), s.startWithin.seconds()
	if s.persist { // limits how long the director reports the wait, not the task
		s.req.WaitTimeout = s.waitTimeout.seconds()
	}
	s.req.Env, err = a.taskEnv(s.env)
	return err
}

func (a *app) message(args []string) (string, error) {
	switch {
	case len(args) == 1:
		return a.prompt(args[0])
	case a.io.InTTY:
		return "", usage("no message: want signalbox chat AGENT MESSAGE").withHint("- reads the message from standard input")
	}
	return a.prompt("-")
}

// check rejects flags that exclude each other.
func (s *chatFlags) check() error {
	line := s.noWait || s.persist || s.startWithin != 0 || s.req.Priority != 0
	talk := s.req.NewSession || s.req.SessionID != "" || s.project != ""
	switch {
	case s.req.NewSession && s.req.SessionID != "":
		return usage("--new and --session exclude each other: a new conversation has no id yet")
	case s.noWait && (s.persist || s.startWithin != 0):
		return usage("--no-wait excludes --persist and --start-within: it does not wait at all")
	case s.persist && s.startWithin != 0:
		return usage("--persist waits for as long as it takes: leave out --start-within")
	case s.bypass && (line || talk):
		return usage("--bypass has no line and no conversation: leave out --no-wait, --persist, --start-within, --priority, --new, --session and --project")
	case !s.bypass && (len(s.allowedTools) > 0 || s.systemPrompt != ""):
		return usage("--allowed-tools and --system-prompt need --bypass")
	case s.async && (s.follow || s.cancelOnInterrupt || s.waitTimeout != 0):
		return usage("--async does not wait: leave out --follow, --cancel-on-interrupt and --wait-timeout")
	}
	return checkPriority(s.req.Priority)
}

func (s *chatFlags) bypassRequest() api.BypassRequest {
	return api.BypassRequest{
		Message: s.req.Message, Model: s.req.Model, Tier: s.req.Tier, Env: s.req.Env, TimeoutSeconds: s.req.TimeoutSeconds,
		AllowedTools: s.allowedTools, SystemPrompt: s.systemPrompt,
	}
}

// executionID is the ID of the execution that this command runs in, set by the
// agent's runner. The director accepts it only with the token of an agent.
func (a *app) executionID() string {
	t, err := a.target()
	if err != nil || !strings.HasPrefix(t.token, agentSecret) {
		return ""
	}
	return a.flagOrEnv("", "SIGNALBOX_QUEUE_ID")
}

// agentSecret is the prefix of agents' tokens.
const agentSecret = "sbxa_"

func (a *app) chat(ctx context.Context, c *client.Client, s *chatFlags) error {
	opts := client.ChatOptions{IdempotencyKey: s.key, Execution: a.executionID(), Async: s.async}
	if s.async {
		return a.chatAsync(ctx, c, s, opts)
	}
	return a.chatLive(ctx, c, s, opts)
}

// chatAsync submits a task and prints its ID.
func (a *app) chatAsync(ctx context.Context, c *client.Client, s *chatFlags, opts client.ChatOptions) error {
	var reply client.ChatReply
	var err error
	if s.bypass {
		reply, err = c.Bypass(ctx, s.agent, s.bypassRequest(), opts)
	} else {
		reply, err = c.Chat(ctx, s.agent, s.req, opts)
	}
	if err != nil {
		return err
	}
	if reply.Response != nil { // the idempotency key was used before, and its task has ended
		return a.print(reply.Response, func() { a.say("%s", clean(reply.Response.Execution.ID)) })
	}
	got := reply.Accepted
	return a.print(got, func() {
		if got.Position > 0 {
			a.note("%s", queuedAt(got.Position, got.ETA, got.WaitingFor))
		}
		a.note("The task goes on: %s", comeBack(got.Execution.ID))
		a.say("%s", clean(got.Execution.ID))
	})
}

// queuedAt is the line for a place in the queue. Scripts depend on its form.
func queuedAt(position int, e *api.ETA, w *api.WaitingFor) string {
	line := fmt.Sprintf("Queued at position %d", position)
	if w != nil {
		return line + ": " + clean(w.Text)
	}
	return line + opt(" (%s)", eta(e))
}

func comeBack(id string) string {
	return fmt.Sprintf("come back with signalbox logs -f %s, stop it with signalbox cancel %s", id, id)
}
