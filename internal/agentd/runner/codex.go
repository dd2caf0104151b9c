package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var codexSandboxes = []string{"read-only", "workspace-write", "danger-full-access"}

type codexRunner struct{ commonRunner }

func newCodex(o Options) (Runner, error) {
	o.Permission = cmp.Or(o.Permission, "workspace-write")
	if err := oneOf("codex sandbox", o.Permission, codexSandboxes); err != nil {
		return nil, err
	}
	return codexRunner{commonRunner{kind: "codex", opt: o}}, nil
}

func (c codexRunner) Plan(t Task) (Plan, error) {
	bin, err := c.binary()
	if err != nil {
		return Plan{}, err
	}
	args := append([]string{bin}, c.opt.ExtraArgs...)
	args = append(args, "exec", "--json", "--skip-git-repo-check", "--sandbox", c.opt.Permission)
	if t.Model != "" {
		args = append(args, "--model", t.Model)
	}
	if t.Thinking != nil {
		effort := "low"
		if *t.Thinking {
			effort = "high"
		}
		args = append(args, "-c", `model_reasoning_effort="`+effort+`"`)
	}
	if t.SystemPrompt != "" {
		args = append(args, "-c", "developer_instructions="+tomlString(t.SystemPrompt))
	}
	var notes []string
	if t.Gateway != nil {
		var connect []string
		connect, notes = c.codexGateway(t, bin)
		args = append(args, connect...)
	}
	if t.CLISession != "" && t.Resume {
		args = append(args, "resume", t.CLISession)
	}
	// "-" makes codex read the prompt from standard input: any length, any
	// beginning.
	args = append(args, "-")
	vars := []string{"CODEX_HOME=" + c.StateDir(t.Home)}
	if env(t.Env, "RUST_LOG") == "" {
		vars = append(vars, "RUST_LOG=error,"+codexActivity+"=trace")
	}
	stream := &codexStream{trouble: c.trouble(t), zone: zoneOf(t.Env), state: c.StateDir(t.Home)}
	if t.CLISession != "" && t.Resume {
		stream.meter.before.tokens = codexCounted(fileEnd(codexRollout(stream.state, t.CLISession)))
	}
	stream.begun = stream.clock()
	return Plan{Argv: args, Env: vars, Stdin: t.Prompt, Stream: stream, Notes: notes}, nil
}

// codexActivity is the log target for each piece of its model's output. Codex
// prints messages and tool calls only when they are complete, and nothing
// before that.
const codexActivity = "codex_api::sse::responses"

// StderrLine notices that the model is writing, and the usage of its answers.
func (s *codexStream) StderrLine(line []byte) (text string, pulse bool) {
	_, event, pulse := bytes.Cut(line, []byte(codexActivity+": SSE event: "))
	if pulse = pulse && bytes.Contains(line, []byte(" TRACE ")); !pulse {
		return "", false
	}
	switch {
	case bytes.Contains(event, []byte(`"type":"response.output_`)): // not the beginning or a failure
		s.answered()
	case bytes.Contains(event, []byte(`"type":"response.created"`)):
		s.asks()
	case bytes.Contains(event, []byte(`"type":"response.completed"`)):
		s.completed(event)
	}
	return "", true
}

var codexSessionForm = regexp.MustCompile(`^[0-9a-fA-F-]+$`)

func (c codexRunner) SessionExists(home, id string) bool {
	return codexRollout(c.StateDir(home), id) != ""
}

// codexRollout returns the file of a conversation, "" if there is none.
func codexRollout(state, id string) string {
	if len(id) != 36 || !codexSessionForm.MatchString(id) {
		return ""
	}
	m, _ := filepath.Glob(filepath.Join(state, "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl"))
	if len(m) == 0 {
		return ""
	}
	return m[len(m)-1]
}

// SessionsIn reads the names of the conversations only once.
func (c codexRunner) SessionsIn(home string) func(string) bool {
	files, _ := filepath.Glob(filepath.Join(c.StateDir(home), "sessions", "*", "*", "*", "rollout-*.jsonl"))
	ids := make(map[string]bool, len(files))
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".jsonl"); len(name) > 36 {
			ids[name[len(name)-36:]] = true
		}
	}
	return func(id string) bool { return ids[id] }
}

// CheckExtras accepts a system prompt, which codex calls developer
// instructions.
func (c codexRunner) CheckExtras(allowedTools []string, systemPrompt string) error {
	if err := c.commonRunner.CheckExtras(allowedTools, ""); err != nil {
		return err
	}
	return checkSystemPrompt(systemPrompt)
}

func (c codexRunner) Terminal(home string) (argv, env []string, err error) {
	bin, err := c.binary()
	return []string{bin}, []string{"CODEX_HOME=" + c.StateDir(home)}, err
}

func (codexRunner) StateDir(home string) string { return filepath.Join(home, ".codex") }
func (codexRunner) LoginFiles() []string {
	return []string{".codex/auth.json", ".codex/config.toml"}
}

type codexStream struct {
	trouble
	zone     *time.Location // time zone of its output
	state    string         // folder of its conversations
	begun    time.Time
	session  string
	model    string // model of the last answer
	lastText string
	lastErr  string
	tools    int64
	refused  []string
	done     bool
	failed   bool
}

type codexEvent struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"` // in an error event
	Error    struct {
		Message string `json:"message"`
	} `json:"error"` // in turn.failed
	Usage codexUsage `json:"usage"` // in turn.completed
	Item  struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Message string `json:"message"`
		Command string `json:"command"`
		Server  string `json:"server"`
		Tool    string `json:"tool"`
		Query   string `json:"query"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"` // in an mcp_tool_call
		Changes []struct {
			Path string `json:"path"`
			Kind string `json:"kind"`
		} `json:"changes"`
	} `json:"item"`
}

func (s *codexStream) Line(line []byte) string {
	var e codexEvent
	if json.Unmarshal(line, &e) != nil {
		return ""
	}
	switch e.Type {
	case "thread.started":
		s.session = e.ThreadID
	case "turn.completed":
		s.done = true
		s.counted(e.Usage.tokens())
	case "turn.failed":
		s.done, s.failed = true, true
		s.lastErr = firstText(e.Error.Message, s.lastErr)
	case "error":
		s.lastErr = firstText(e.Message, s.lastErr)
		s.text = oneLine(e.Message, 300)
		s.retries(e.Message)
		return "[error] " + oneLine(e.Message, 300) + "\n"
	case "item.started":
		s.answered()
		s.uses()
		if e.Item.Type == "command_execution" {
			return "[shell] " + oneLine(e.Item.Command, 160) + "\n"
		}
	case "item.completed":
		if e.Item.Type != "error" {
			s.answered()
		}
		return s.item(e)
	}
	return ""
}

// codexTools are the items that are tool calls.
var codexTools = map[string]bool{
	"command_execution": true, "file_change": true, "mcp_tool_call": true, "collab_tool_call": true, "web_search": true,
}

func (s *codexStream) item(e codexEvent) string {
	if codexTools[e.Item.Type] {
		s.tools++
	}
	switch it := e.Item; it.Type {
	case "agent_message":
		s.lastText = it.Text
		return strings.TrimRight(it.Text, "\n") + "\n"
	case "file_change":
		var out strings.Builder
		for _, c := range it.Changes {
			out.WriteString("[" + firstText(c.Kind, "change") + "] " + c.Path + "\n")
		}
		return out.String()
	case "mcp_tool_call":
		line := "[" + it.Server + " " + it.Tool + "]\n"
		if why := it.Error.Message; why != "" {
			line += "[tool failed] " + oneLine(why, 300) + "\n"
			if strings.Contains(why, "requires approval") {
				s.refused = append(s.refused, it.Server+" "+it.Tool)
			}
		}
		return line
	case "web_search":
		return "[search] " + oneLine(it.Query, 160) + "\n"
	case "error":
		return "[error] " + oneLine(it.Message, 300) + "\n"
	}
	return ""
}

func (s *codexStream) Session() string { return s.session }
func (s *codexStream) Done() bool      { return s.done }

func (s *codexStream) Outcome(x Exit) Outcome {
	code := x.Code
	o := Outcome{Output: s.lastText, ExitCode: &code, ToolCount: s.tools, Refused: s.refused}
	s.readRollout()
	text := apiErrorText(s.lastErr)
	switch {
	case s.done && !s.failed:
		return o
	case s.lastErr == "" && !s.failed:
		return noResult("codex", x, o)
	}
	if s.gaveUp(text); s.heard.Limit != nil {
		return s.limitFailure("codex", text, x, o)
	}
	return failed("claude_error", text, x, o)
}

// apiErrorText extracts the message if an error is JSON of the model's API.
func apiErrorText(s string) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(s), &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	return s
}
