package runner

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

type opencodeRunner struct{ commonRunner }

func newOpencode(o Options) (Runner, error) {
	o.Permission = cmp.Or(o.Permission, "ask")
	if err := oneOf("opencode permission", o.Permission, []string{"ask", "allow"}); err != nil {
		return nil, err
	}
	return opencodeRunner{commonRunner{kind: "opencode", opt: o}}, nil
}

func (c opencodeRunner) Plan(t Task) (Plan, error) {
	bin, err := c.binary()
	if err != nil {
		return Plan{}, err
	}
	args := append([]string{bin}, c.opt.ExtraArgs...)
	args = append(args, "run", "--format", "json", "--print-logs", "--log-level", "ERROR")
	if c.opt.Permission == "allow" {
		args = append(args, "--auto")
	}
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	if t.Thinking != nil && *t.Thinking {
		args = append(args, "--variant", "high")
	}
	if t.CLISession != "" && t.Resume {
		args = append(args, "--session", t.CLISession)
	}
	// The prompt goes to standard input: any length, any beginning.
	p := Plan{Argv: args, Stdin: t.Prompt, Stream: &opencodeStream{trouble: c.trouble(t), zone: zoneOf(t.Env)}}
	if t.Gateway != nil {
		connect, err := opencodeGateway(t)
		if err != nil {
			return Plan{}, err
		}
		p.Env = append(p.Env, connect)
	}
	return p, nil
}

// SessionExists accepts IDs in the CLI's own format; the CLI itself reports
// an unknown one.
func (opencodeRunner) SessionExists(_, id string) bool { return strings.HasPrefix(id, "ses_") }

func (c opencodeRunner) SessionsIn(home string) func(string) bool {
	return func(id string) bool { return c.SessionExists(home, id) }
}

func (c opencodeRunner) Terminal(string) (argv, env []string, err error) {
	bin, err := c.binary()
	return []string{bin}, nil, err
}

// CheckBudget accepts any budget: usually a model's price is known once it has
// answered.
func (opencodeRunner) CheckBudget(signalbox.Budget, string) error { return nil }

func (opencodeRunner) StateDir(home string) string {
	return filepath.Join(home, ".local", "share", "opencode")
}

func (opencodeRunner) LoginFiles() []string {
	return []string{".local/share/opencode/auth.json", ".config/opencode/opencode.json"}
}

type opencodeStream struct {
	trouble
	zone    *time.Location // time zone of its output
	session string
	refused []string
	texts   []string // of the last step that had any text
	fresh   bool     // a step has begun since the last text
	err     string
	ended   bool // an error ended the step
	tools   int64
	done    bool
}

type opencodeEvent struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Part      struct {
		ID     string `json:"id"`
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		Reason string `json:"reason"`
		Cost   number `json:"cost"`
		State  struct {
			Title string          `json:"title"`
			Input json.RawMessage `json:"input"`
		} `json:"state"`
		Tokens struct {
			Input     count `json:"input"`
			Output    count `json:"output"`
			Reasoning count `json:"reasoning"`
			Cache     struct {
				Read  count `json:"read"`
				Write count `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"part"`
	Error json.RawMessage `json:"error"`
}

func (s *opencodeStream) Line(line []byte) string {
	var e opencodeEvent
	if json.Unmarshal(line, &e) != nil {
		return ""
	}
	if e.SessionID != "" {
		s.session = e.SessionID
	}
	if e.Type != "error" {
		s.answered() // it prints nothing before the model answers
	}
	switch e.Type {
	case "step_start":
		s.fresh, s.done, s.ended = true, false, false
		s.asks()
	case "text":
		if s.fresh {
			s.texts, s.fresh = nil, false
		}
		s.texts = append(s.texts, e.Part.Text)
		return strings.TrimRight(e.Part.Text, "\n") + "\n"
	case "tool_use": // reported once per call, at its end
		s.tools++
		return toolLine(e.Part.Tool, e.Part.State.Input)
	case "step_finish":
		s.step(e)
	case "error":
		s.over()
		s.ended = true
		said := opencodeError(e.Error)
		s.err = firstText(said.text, s.err, "opencode reported an error without a text")
		s.gaveUp(said)
		return "[error] " + oneLine(s.err, 300) + "\n"
	}
	return ""
}

// opencodeLog matches an error in opencode's own log. Errors of side requests,
// such as for a title, do not count.
var (
	opencodeLog     = regexp.MustCompile(`\blevel=ERROR .*message="stream error"(?:.*\bsession\.id=(ses_\w+))?.*\bsmall=false\b.*\berror\.error="([^"]*)"`)
	opencodeRefusal = regexp.MustCompile(`permission requested: ([a-z_]+) .*auto-rejecting`)
)

// StderrLine finds what opencode reports only in its log: that it keeps
// retrying its model, and which tools it refused.
func (s *opencodeStream) StderrLine(line []byte) (string, bool) {
	text := Plain(string(line))
	if m := opencodeLog.FindStringSubmatch(text); m != nil {
		s.text = "the model's API fails: " + strings.TrimPrefix(m[2], "AI_APICallError: ")
		s.session = cmp.Or(s.session, m[1]) // at a limit this is the only place with the ID
		if !s.ended {                       // otherwise the log repeats the event, which has more detail
			s.retries(s.text)
		}
		return "[error] " + oneLine(s.text, 300) + "\n", false
	}
	if m := opencodeRefusal.FindStringSubmatch(text); m != nil {
		s.refused = append(s.refused, m[1])
		return "[refused] " + oneLine(text, 300) + "\n", false
	}
	return "", false
}

func (s *opencodeStream) step(e opencodeEvent) {
	t := e.Part.Tokens
	s.spent(e.Part.ID, "", tokens{t.Input, t.Cache.Read, t.Cache.Write, t.Output + t.Reasoning}, float64(e.Part.Cost))
	// A step that calls tools is followed by another.
	if s.done = e.Part.Reason != "tool-calls"; !s.done {
		s.asks()
	}
}

func (s *opencodeStream) Session() string { return s.session }

// Done is never true before the end: what looks like the last step may be
// followed by another.
func (s *opencodeStream) Done() bool { return false }

func (s *opencodeStream) Outcome(x Exit) Outcome {
	code := x.Code
	o := Outcome{Output: strings.Join(s.texts, "\n"), ExitCode: &code, ToolCount: s.tools, Refused: s.refused}
	switch {
	case s.heard.Limit != nil && (s.err != "" || (!s.done && s.heard.Limit.Source != byGuess)):
		return s.limitFailure("opencode", firstText(s.err, s.heard.Limit.Text), x, o)
	case s.err != "":
		return failed("claude_error", s.err, x, o)
	case !s.done && len(s.refused) > 0: // opencode ends after a refusal
		return failed("claude_error", "opencode ended at a "+o.Refusals(), x, o)
	case !s.done:
		return noResult("opencode", x, o)
	case x.Code != 0:
		return failed("exit_nonzero", withStderr("opencode failed: "+x.Text, x.Stderr), x, o)
	}
	return o
}

// opencodeFailure is an error event, with the answer of the model's API if that
// is the reason.
type opencodeFailure struct {
	text    string
	status  int // 0: none
	headers map[string]string
}

func opencodeError(raw json.RawMessage) opencodeFailure {
	var e struct {
		Name    string `json:"name"`
		Message string `json:"message"`
		Data    struct {
			Message string            `json:"message"`
			Status  int               `json:"statusCode"`
			Headers map[string]string `json:"responseHeaders"`
		} `json:"data"`
	}
	_ = json.Unmarshal(raw, &e) // an unknown form has no text to show
	return opencodeFailure{firstText(e.Data.Message, e.Message, e.Name), e.Data.Status, e.Data.Headers}
}

// gaveUp records the limit in the error that ends the run.
func (s *opencodeStream) gaveUp(f opencodeFailure) {
	switch l := (api.AgentLimit{Source: byEvent, Text: s.err}); f.status {
	case http.StatusUnauthorized:
		s.limited(refusedLogin, l)
	case 529:
		s.limited(overloaded, l)
	case http.StatusTooManyRequests:
		seconds, _ := strconv.ParseFloat(f.headers["retry-after"], 64) // other forms are ignored
		if at := epoch(float64(s.clock().Unix()) + seconds); seconds > 0 && at != nil {
			l.Source, l.ResetsAt = byHeader, at
		} else if at, ok := resetTime(s.err, s.clock(), s.zone); ok {
			l.Source, l.ResetsAt = byText, &at
		}
		s.limited(usageLimit, l)
	case 0:
		s.fromText(s.err, s.zone)
	}
}

// retries records that opencode will retry its request. It reports neither a
// status nor a time; at a limit it may sleep for hours.
func (s *opencodeStream) retries(text string) {
	if !tellsLimit(text) {
		// By default it waits half a minute at most; a longer wait is the provider's.
		typ := usageLimit
		if overloadWords.MatchString(text) {
			typ = overloaded
		}
		s.limited(typ, api.AgentLimit{Source: byGuess, Text: text})
		s.heard.Patience, s.refusals = 3*s.wait, 0
		return
	}
	l := api.AgentLimit{Source: byText, Text: text}
	if at, ok := resetTime(text, s.clock(), s.zone); ok {
		l.ResetsAt = &at
	}
	s.throttled(0, l)
}
