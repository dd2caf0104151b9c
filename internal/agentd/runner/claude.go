package runner

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// claudeModes are the permission modes of Claude Code. If a mode would ask
// the user, the request is denied, because nobody is there to answer.
var claudeModes = []string{"acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

type claudeRunner struct{ commonRunner }

func newClaude(o Options) (Runner, error) {
	o.Permission = cmp.Or(o.Permission, "acceptEdits")
	if err := oneOf("claude permission mode", o.Permission, claudeModes); err != nil {
		return nil, err
	}
	tiers := map[string]string{"fast": "haiku", "standard": "sonnet", "heavy": "opus"}
	return claudeRunner{commonRunner{kind: "claude", opt: o, tiers: tiers}}, nil
}

func (c claudeRunner) Plan(t Task) (Plan, error) {
	bin, err := c.binary()
	if err != nil {
		return Plan{}, err
	}
	// The prompt goes to standard input: it may exceed the maximum length of an
	// argument and may begin with a dash.
	args := append([]string{bin}, c.opt.ExtraArgs...)
	args = append(args, "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--permission-mode", c.opt.Permission)
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	if c.opt.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(c.opt.MaxTurns))
	}
	gateway := c.offersGateway(t)
	if gateway {
		connect, err := c.claudeGateway(t)
		if err != nil {
			return Plan{}, err
		}
		args = append(args, connect...)
	}
	args = append(args, c.toolArgs(t.AllowedTools, gateway)...)
	if t.SystemPrompt != "" {
		args = append(args, "--append-system-prompt="+t.SystemPrompt)
	}
	switch {
	case t.CLISession != "" && t.Resume:
		args = append(args, "--resume", t.CLISession)
	case t.CLISession != "":
		args = append(args, "--session-id", t.CLISession)
	}
	stream := &claudeStream{trouble: c.trouble(t), zone: zoneOf(t.Env), state: c.StateDir(t.Home)}
	if t.Resume {
		stream.meter.before = claudeCounted(stream.state, t.CLISession)
	}
	if t.Budget.NanoUSD > 0 && keepsBudget(bin) {
		args = append(args, "--max-budget-usd", strconv.FormatFloat(t.Budget.USD(), 'f', -1, 64))
		stream.meter.bounded = true
	}
	p := Plan{Stdin: t.Prompt, Stream: stream}
	if t.Thinking != nil && *t.Thinking {
		args = append(args, "--effort", "high")
	} else if t.Thinking != nil {
		p.Env = append(p.Env, "MAX_THINKING_TOKENS=0")
	}
	p.Argv = args
	return p, nil
}

// NewSession returns the name itself if it is a UUID, which the CLI requires,
// otherwise a new UUID.
func (claudeRunner) NewSession(name string) string {
	if uuidForm.MatchString(name) {
		return strings.ToLower(name)
	}
	return NewUUID()
}

func (c claudeRunner) SessionExists(home, id string) bool {
	return claudeConversation(c.StateDir(home), id) != ""
}

// claudeConversation returns the file of a conversation, "" if there is none.
func claudeConversation(state, id string) string {
	if !uuidForm.MatchString(id) {
		return ""
	}
	m, _ := filepath.Glob(filepath.Join(state, "projects", "*", id+".jsonl"))
	if len(m) == 0 {
		return ""
	}
	return m[0]
}

// SessionsIn reads the names of the conversations only once.
func (c claudeRunner) SessionsIn(home string) func(string) bool {
	files, _ := filepath.Glob(filepath.Join(c.StateDir(home), "projects", "*", "*.jsonl"))
	ids := make(map[string]bool, len(files))
	for _, f := range files {
		ids[strings.TrimSuffix(filepath.Base(f), ".jsonl")] = true
	}
	return func(id string) bool { return ids[id] }
}

func (c claudeRunner) Terminal(string) (argv, env []string, err error) {
	bin, err := c.binary()
	return []string{bin}, nil, err
}

func (claudeRunner) StateDir(home string) string { return filepath.Join(home, ".claude") }
func (claudeRunner) LoginFiles() []string        { return []string{".claude/.credentials.json"} }

// NewUUID returns a random (version 4) UUID.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

type claudeStream struct {
	trouble
	session  string
	model    string
	partial  string // of the text block in progress
	lastText string
	zone     *time.Location // time zone of its output
	state    string         // folder of its conversations
	tools    int64
	result   *claudeEvent

	answering claudeAnswer // the model's current or last answer
	asking    bool         // the model is being asked, or its last answer means that it will be
}

type claudeEvent struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Message   struct {
		claudeAnswer
		Content json.RawMessage `json:"content"`
	} `json:"message"`

	Model string `json:"model"` // in the init event

	Servers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`

	Parent *string `json:"parent_tool_use_id"` // set for output of a subagent

	Attempt    int             `json:"attempt"` // in api_retry
	MaxRetries int             `json:"max_retries"`
	Status     json.RawMessage `json:"error_status"`
	Error      json.RawMessage `json:"error"` // also in an assistant event, like the next fields: the API refused
	Delay      number          `json:"retry_delay_ms"`

	APIError  word            `json:"api_error"` // also in the result event
	APIStatus number          `json:"api_error_status"`
	RateLimit claudeRateLimit `json:"rate_limit_info"` // in rate_limit_event

	Answer string `json:"api_message_id"` // in stream_event
	Event  struct {
		Type    string       `json:"type"`
		Message claudeAnswer `json:"message"` // in message_start
		Usage   claudeUsage  `json:"usage"`   // in message_delta
		Delta   struct {
			Text string `json:"text"`
			Stop string `json:"stop_reason"`
		} `json:"delta"`
	} `json:"event"`

	Denials []struct { // in the result event
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`

	IsError bool            `json:"is_error"` // in the result event
	Result  string          `json:"result"`
	Errors  json.RawMessage `json:"errors"`
	Cost    float64         `json:"total_cost_usd"`
	Usage   claudeUsage     `json:"usage"`
	Models  claudeModels    `json:"modelUsage"`
}

type claudeBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	Content json.RawMessage `json:"content"` // in the result of a tool
	IsError bool            `json:"is_error"`
}

func (s *claudeStream) Line(line []byte) string {
	var e claudeEvent
	if json.Unmarshal(line, &e) != nil {
		return ""
	}
	if e.SessionID != "" {
		s.session = e.SessionID
	}
	s.model = cmp.Or(s.model, e.Model)
	switch e.Type {
	case "result":
		s.result = &e
	case "assistant":
		if e.refused() {
			s.refusal(e, blockText(e.Message.Content))
		} else {
			s.answered()
			s.countAnswer(e.Message.claudeAnswer)
		}
		return s.assistant(e)
	case "rate_limit_event":
		s.rateLimit(e.RateLimit)
	case "stream_event":
		s.answered()
		s.streams(e)
		if e.Parent != nil {
			return "" // the whole block follows
		}
		s.partial += e.Event.Delta.Text
		return e.Event.Delta.Text
	case "user":
		return claudeResults(e)
	case "system":
		return s.system(e)
	}
	return ""
}

// system reports servers that could not be started, and a model that is not
// available.
func (s *claudeStream) system(e claudeEvent) string {
	var out strings.Builder
	switch e.Subtype {
	case "init":
		for _, server := range e.Servers {
			if server.Status == "failed" || server.Status == "needs-auth" {
				out.WriteString("[error] MCP server " + server.Name + ": " + server.Status + "\n")
			}
		}
	case "api_retry":
		reason := e.reason()
		s.text = "the model's API cannot be reached"
		if status := string(e.Status); status != "" && status != "null" {
			s.text = "the model's API answers " + oneLine(status, 40)
		}
		if reason != "" {
			s.text += " (" + oneLine(reason, 80) + ")"
		}
		s.retries(e, reason)
		fmt.Fprintf(&out, "[error] %s, attempt %d of %d\n", s.text, e.Attempt, e.MaxRetries)
	}
	return s.fresh() + out.String()
}

// claudeResults shows the beginning of tools' results.
func claudeResults(e claudeEvent) string {
	var blocks []claudeBlock
	if json.Unmarshal(e.Message.Content, &blocks) != nil {
		return ""
	}
	var out strings.Builder
	for _, b := range blocks {
		if text := blockText(b.Content); b.Type == "tool_result" && b.IsError {
			out.WriteString("[tool failed] " + oneLine(firstText(text, "no text"), 300) + "\n")
		} else if b.Type == "tool_result" && text != "" {
			out.WriteString("[result] " + oneLine(text, 160) + "\n")
		}
	}
	return out.String()
}

// blockText is the text of a tool's result: a string, or blocks of text.
func blockText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []claudeBlock
	_ = json.Unmarshal(raw, &blocks) // another form has no text to show
	for _, b := range blocks {
		text = firstText(text, b.Text)
	}
	return text
}

// fresh ends the line of a text that broke off.
func (s *claudeStream) fresh() string {
	open := s.partial != "" && !strings.HasSuffix(s.partial, "\n")
	s.partial = ""
	if open {
		return "\n"
	}
	return ""
}

func (s *claudeStream) assistant(e claudeEvent) string {
	var blocks []claudeBlock
	if json.Unmarshal(e.Message.Content, &blocks) != nil {
		return ""
	}
	var out strings.Builder
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) != "" && e.Parent != nil {
				out.WriteString(s.fresh() + strings.TrimRight(b.Text, "\n") + "\n")
			} else if strings.TrimSpace(b.Text) != "" {
				s.lastText = b.Text
				out.WriteString(s.unshown(b.Text))
			}
		case "tool_use", "server_tool_use", "mcp_tool_use":
			s.tools++
			out.WriteString(s.fresh())
			out.WriteString(toolLine(b.Name, b.Input))
		}
	}
	return out.String()
}

// unshown is the part of a complete text that was not shown while it was
// written.
func (s *claudeStream) unshown(text string) string {
	shown := s.partial
	s.partial = ""
	if after, ok := strings.CutPrefix(text, shown); ok {
		if after = strings.TrimRight(after, "\n"); after == "" && strings.HasSuffix(shown, "\n") {
			return ""
		}
		return after + "\n"
	}
	return "\n" + strings.TrimRight(text, "\n") + "\n" // it is a different text
}

func (s *claudeStream) Session() string { return s.session }
func (s *claudeStream) Done() bool      { return s.result != nil }

func (s *claudeStream) Outcome(x Exit) Outcome {
	code := x.Code
	o := Outcome{ExitCode: &code, ToolCount: s.tools, Model: s.model}
	s.total()
	if s.result == nil && s.heard.Limit != nil {
		return s.limitFailure("claude", s.heard.Limit.Text, x, o)
	}
	if s.result == nil {
		return noResult("claude", x, o)
	}
	r := s.result
	for _, d := range r.Denials {
		o.Refused = append(o.Refused, d.Tool)
	}
	o.Output = r.Result
	switch {
	case r.Subtype == "error_max_budget_usd" && !s.asking: // it was done
		o.Output = firstText(r.Result, s.lastText)
	case r.Subtype == "error_max_budget_usd":
		return failed(OverBudget, firstText(errorTexts(r.Errors), "claude stopped at its limit of money"), x, o)
	case r.Subtype == "error_max_turns":
		return failed("max_turns", "claude stopped at its limit of turns before it was done", x, o)
	case r.IsError || r.Subtype != "success":
		msg := firstText(r.Result, errorTexts(r.Errors), s.lastText)
		if msg == "" {
			msg = withStderr("claude reported "+firstText(r.Subtype, "an error"), x.Stderr)
		}
		if s.heard.Limit == nil && r.refused() {
			s.refusal(*r, msg)
		}
		if s.heard.Limit == nil {
			s.fromText(msg, s.zone)
		}
		if s.heard.Limit != nil {
			return s.limitFailure("claude", msg, x, o)
		}
		return failed("claude_error", msg, x, o)
	}
	return o
}

// toolLine shows a tool call on one line: the tool's name and its most
// informative argument.
func toolLine(name string, input json.RawMessage) string {
	var m map[string]any
	_ = json.Unmarshal(input, &m) // without arguments only the name is shown
	for _, k := range []string{"command", "cmd", "file_path", "filePath", "path", "pattern", "url", "query", "description", "prompt"} {
		if v, ok := m[k].(string); ok && v != "" {
			return "[" + name + "] " + oneLine(v, 160) + "\n"
		}
	}
	return "[" + name + "]\n"
}

// errorTexts reads a list of strings or of objects with a message.
func errorTexts(raw json.RawMessage) string {
	var texts []string
	if json.Unmarshal(raw, &texts) == nil {
		return strings.Join(texts, "; ")
	}
	var objects []struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &objects) // an unknown form has no text to show
	for _, o := range objects {
		texts = append(texts, o.Message)
	}
	return strings.Join(texts, "; ")
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}

func oneOf(what, v string, allowed []string) error {
	for _, a := range allowed {
		if v == a {
			return nil
		}
	}
	return errors.New("unknown " + what + " " + strconv.Quote(v) + ": one of " + strings.Join(allowed, ", "))
}
