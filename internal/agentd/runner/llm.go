package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/anthropic"
	"github.com/signalbox-ai/signalbox/internal/llm/openai"
	"github.com/signalbox-ai/signalbox/steplimit"
)

// LLM are the options of kind llm, Signalbox's own loop around a model.
type LLM struct {
	Provider  string // openai (default) or anthropic
	BaseURL   string // URL of the model's endpoint; "": the provider's *_BASE_URL, else the vendor's
	APIKey    string // "": the provider's *_API_KEY
	System    string
	MaxTokens int    // of one turn; 0: 8192
	MaxTurns  int    // 0: 10
	Tools     string // URL of an MCP endpoint; director: the director's tools; auto (default): those, if there are any; none

	// Names of tools, in which * stands for any text (signalbox.MatchTool). A run
	// fails if an entry of Exempt or Approval matches no tool.
	Allowed  []string // the only tools it has; empty: all
	Exempt   []string // tools that the limit does not count
	Approval []string // tools that are refused, because nobody can approve them

	Steps     *Steps // limit of each step; nil: ten calls
	OverLimit string // reject (default) or queue

	Patience time.Duration // how long to look for missing tools; 0: 30 s
	Retries  int           // of a request to the model; 0: 2; negative: none
}

// llmRunner answers a prompt within this process: the model decides, and the
// tools are those of an MCP endpoint. It uses no working folder and no CLI.
type llmRunner struct{ commonRunner }

func newLLM(o Options) (Runner, error) {
	l := &o.LLM
	l.Provider = cmp.Or(l.Provider, "openai")
	l.OverLimit = cmp.Or(l.OverLimit, "reject")
	l.Tools = cmp.Or(l.Tools, "auto")
	l.MaxTokens = cmp.Or(l.MaxTokens, 8192)
	if l.Steps == nil {
		l.Steps = NewSteps(0, 0)
	}
	if err := l.Steps.check(); err != nil {
		return nil, err
	}
	if err := oneOf("llm provider", l.Provider, []string{"openai", "anthropic"}); err != nil {
		return nil, err
	}
	if err := oneOf("llm over_limit", l.OverLimit, []string{"reject", "queue"}); err != nil {
		return nil, err
	}
	for _, list := range append(l.toolLists(), toolList{"agent.llm.allowed_tools", l.Allowed}) {
		if err := checkToolNames(list.key, list.entries); err != nil {
			return nil, err
		}
	}
	return llmRunner{commonRunner{kind: "llm", opt: o}}, nil
}

// toolLists are the lists in which every entry must match a tool.
func (l *LLM) toolLists() []toolList {
	return []toolList{{"agent.llm.approval", l.Approval}, {"agent.llm.exempt", l.Exempt}}
}

func (llmRunner) Inside() bool { return true }

// Model requires a model: endpoints have no default.
func (l llmRunner) Model(model, tier, fallback string) (string, error) {
	m, err := l.commonRunner.Model(model, tier, fallback)
	if err == nil && m == "" {
		err = errors.New("there is none: name one in the task, or set agent.model for this agent")
	}
	return m, err
}

// A conversation has our own name, and is a file below home.

func (llmRunner) NewSession(name string) string { return name }

func conversations(home string) (*llm.Store, error) {
	return llm.OpenStore(filepath.Join(home, "conversations"))
}

func (l llmRunner) SessionExists(home, id string) bool { return l.SessionsIn(home)(id) }

func (llmRunner) SessionsIn(home string) func(string) bool {
	store, err := conversations(home)
	if err != nil {
		return func(string) bool { return false }
	}
	return store.Exists
}

func (llmRunner) Forget(home, id string) error {
	store, err := conversations(home)
	if err != nil {
		return err
	}
	return store.Remove(id)
}

// mcpTool matches the name of a tool, or a pattern in which * stands for any
// text.
var mcpTool = regexp.MustCompile(`^[A-Za-z0-9_*][A-Za-z0-9_./:*-]*$`)

func checkToolNames(key string, names []string) error {
	for _, tool := range names {
		if len(tool) > 200 || !mcpTool.MatchString(tool) {
			return fmt.Errorf("%s: %q is not the name of a tool, such as server__tool, or server__* for all of a server", key, clip(tool))
		}
	}
	return nil
}

func (llmRunner) CheckExtras(allowedTools []string, systemPrompt string) error {
	if len(allowedTools) > maxAllowedTools {
		return fmt.Errorf("allowed_tools has %d entries: %d at most", len(allowedTools), maxAllowedTools)
	}
	if err := checkToolNames("allowed_tools", allowedTools); err != nil {
		return err
	}
	return checkSystemPrompt(systemPrompt)
}

func (l llmRunner) Plan(t Task) (Plan, error) {
	r := &llmRun{trouble: l.trouble(t), o: l.opt.LLM, task: t}
	if t.Model == "" {
		return Plan{}, errors.New("no model is named: name one in the task, or set agent.model for this agent")
	}
	if err := r.findModel(); err != nil {
		return Plan{}, err
	}
	if err := r.findTools(); err != nil {
		return Plan{}, err
	}
	return Plan{Func: func(ctx context.Context, out io.Writer) Outcome { return r.run(ctx, out) }}, nil
}

func (l *LLM) keyName() string { return strings.ToUpper(l.Provider) + "_API_KEY" }

// endpoint returns the model's URL, "" for the vendor's, and its key: from the task's
// environment, else from the configuration, else from the agent's environment.
func (l *LLM) endpoint(environ []string, brought map[string]string) (base, key string) {
	return firstText(l.BaseURL, env(environ, strings.ToUpper(l.Provider)+"_BASE_URL")),
		firstText(brought[l.keyName()], l.APIKey, env(environ, l.keyName()))
}

// findModel prepares the client of the model's endpoint.
func (r *llmRun) findModel() error {
	base, key := r.o.endpoint(r.task.Env, r.task.Brought)
	if key == "" && (base == "" || vendorHost(base)) {
		return fmt.Errorf("there is no API key for %s: set %s for this agent, or agent.llm.api_key; for another endpoint set agent.llm.base_url", r.o.Provider, r.o.keyName())
	}
	r.transport = http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{Transport: r.transport}
	var err error
	if r.o.Provider == "anthropic" {
		r.model, err = anthropic.New(anthropic.Options{BaseURL: base, APIKey: key, Client: client, Retries: r.o.Retries, Heard: r.headers})
	} else {
		r.model, err = openai.New(openai.Options{BaseURL: base, APIKey: key, Client: client, Retries: r.o.Retries, Heard: r.headers})
	}
	return err
}

// vendorHost reports whether a URL belongs to one of the vendors, which
// require a key.
func vendorHost(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "api.openai.com" || u.Hostname() == "api.anthropic.com")
}

func env(vars []string, name string) string {
	for _, kv := range vars {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v
		}
	}
	return ""
}

// Steps is the limit of the steps of an agent of kind llm, and counts the
// outcomes of their tool calls. The limit may change while runs are active: a
// step keeps the limit with which it began.
type Steps struct {
	load func() (float64, error)

	mu          sync.Mutex
	most, least int
	told        api.AgentSteps
}

// NewSteps returns a limit of most calls per step; 0 is the default. If least is
// above 0, the limit falls to it as the load of the machine rises.
func NewSteps(most, least int) *Steps {
	s := &Steps{load: loadPerCPU}
	s.Set(most, least)
	return s
}

// Set changes the limit for steps that begin from now on.
func (s *Steps) Set(most, least int) {
	most = cmp.Or(most, steplimit.DefaultMax)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.least = most, least
	s.told.Limit = s.now()
}

// check returns an error if the limit should follow the load and cannot.
func (s *Steps) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.least <= 0 {
		return nil
	}
	if _, err := s.load(); err != nil {
		return fmt.Errorf("agent.llm.min_parallel_tool_calls: %w", err)
	}
	return nil
}

// begin returns the limit of a step that begins now.
func (s *Steps) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told.Limit = s.now()
	return s.told.Limit
}

// now is the limit at the current load; the caller holds mu.
func (s *Steps) now() int {
	if s.least <= 0 || s.least >= s.most {
		return s.most
	}
	load, err := s.load()
	if err != nil { // reading it worked when the agent started
		return s.most
	}
	return byLoad(s.most, s.least, load)
}

// byLoad is most up to a load of 1 per CPU, least from 2 on, and linear in
// between.
func byLoad(most, least int, load float64) int {
	over := min(max(load-1, 0), 1)
	return most - int(math.Round(over*float64(most-least)))
}

// loadPerCPU is the load average of the last minute, per CPU that this process
// may use.
func loadPerCPU() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("the load of this machine is not known: %w", err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("the load of this machine is not known: /proc/loadavg says %q", clip(string(text)))
	}
	return load / float64(runtime.GOMAXPROCS(0)), nil
}

// hooks count for Told.
func (s *Steps) hooks() steplimit.Hooks {
	return steplimit.Hooks{
		Queued: func(steplimit.Call, int, int, int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told.Queued++
		},
		Ended: func(r steplimit.Result) {
			s.mu.Lock()
			defer s.mu.Unlock()
			switch r.Outcome {
			case steplimit.Executed:
				s.told.Executed++
			case steplimit.Failed:
				s.told.Failed++
			case steplimit.Refused:
				s.told.Refused++
			case steplimit.NeedsApproval, steplimit.Denied:
				s.told.NeedsApproval++
			case steplimit.Aborted:
				s.told.Aborted++
			}
			if r.Exempt {
				s.told.Exempt++
			}
		},
	}
}

// Told returns the status of the steps for a director; nil if there were
// none.
func (s *Steps) Told() *api.AgentSteps {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	return &told
}
