package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// entry is a tool with its provider.
type entry struct {
	tool     Tool
	provider Provider
	// waitBound bounds the wait for a slot: the tool's timeout, or 0 if the queue has a bound
	// of its own or the tool is async.
	waitBound time.Duration
}

// table is an immutable snapshot of the tools.
type table struct {
	entries  map[string]*entry
	tools    []Tool              // by name
	problems map[string][]string // by server: skipped tools and the reason
}

// makeTable asks all providers. If two tools have the same name, the tool of the first
// provider is used, so that the result does not depend on which server starts first.
func makeTable(providers []Provider, queues *toolqueue.Queues) *table {
	t := &table{entries: map[string]*entry{}, problems: map[string][]string{}}
	waits := map[string]time.Duration{}
	for _, s := range queues.All(0) {
		waits[s.Name] = s.MaxWait
	}
	for _, p := range providers {
		for _, tool := range p.Tools() {
			if why := t.add(p, tool, waits); why != "" {
				t.problems[p.Name()] = append(t.problems[p.Name()], why)
			}
		}
	}
	slices.SortFunc(t.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// add adds a tool, or returns the reason for skipping it.
func (t *table) add(p Provider, tool Tool, waits map[string]time.Duration) string {
	if tool.Timeout <= 0 {
		tool.Timeout = DefaultTimeout
		if tool.Async {
			tool.Timeout = 0
		}
	}
	tool.Definition = validUTF8(tool.Definition)
	e := &entry{tool: tool, provider: p, waitBound: tool.Timeout}
	if tool.Async {
		e.waitBound = 0
	}
	if !validName(tool.Name) {
		return fmt.Sprintf("a tool is left out: its name must be 1 to 256 printable characters, not %q", truncate(tool.Name, 64))
	}
	if other := t.entries[tool.Name]; other != nil {
		return fmt.Sprintf("the tool %q is left out: server %s has one of that name; rename one of the servers", tool.Name, other.provider.Name())
	}
	if tool.Queue != "" {
		wait, ok := waits[tool.Queue]
		if !ok {
			return fmt.Sprintf("the tool %q is left out: its queue %q is not configured; add it under queues", tool.Name, tool.Queue)
		}
		if wait > 0 {
			e.waitBound = 0
		}
	}
	if !isObject(tool.Definition) {
		return fmt.Sprintf("the tool %q is left out: its definition is not a JSON object", tool.Name)
	}
	t.entries[tool.Name] = e
	t.tools = append(t.tools, tool)
	return ""
}

func (t *table) errors() []error {
	var errs []error
	for server, texts := range t.problems {
		for _, text := range texts {
			errs = append(errs, errors.New("server "+server+": "+text))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// rebuild replaces the table and notifies the listeners if the tools have changed.
func (g *Gateway) rebuild() {
	g.rebuilding.Lock()
	old := g.table.Load()
	made := makeTable(g.providers, g.queues)
	g.table.Store(made)
	g.rebuilding.Unlock()
	for server, texts := range made.problems {
		for _, text := range texts {
			if !slices.Contains(old.problems[server], text) {
				g.log.Warn("tool left out", "server", server, "error", text)
			}
		}
	}
	if slices.EqualFunc(old.tools, made.tools, sameTool) {
		return
	}
	g.mu.Lock()
	listeners := slices.Collect(maps.Values(g.listeners))
	g.mu.Unlock()
	for _, f := range listeners {
		f()
	}
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Server == b.Server && a.Kind == b.Kind && a.Queue == b.Queue && a.Timeout == b.Timeout &&
		a.Async == b.Async && a.Restart == b.Restart && slices.Equal(a.Secrets, b.Secrets) && bytes.Equal(a.Definition, b.Definition)
}

func validName(s string) bool {
	bad := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) || unicode.IsSpace(r) }
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, bad)
}

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && json.Valid(raw)
}

// truncate shortens text quoted in an error.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// TextOf is the text of an answer: the text blocks of a Result's Content, one per line.
func TextOf(content json.RawMessage) string {
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks) // other content has no text
	var all []string
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

// MinSecret is the minimum length, in bytes, of a configured secret that is masked in
// output. Masking shorter values, such as "1" or "true", would make the output unreadable.
const MinSecret = 6

// seedTime is the time format of the seed async-task-queue.
const seedTime = "2006-01-02T15:04:05.000Z"

// Queued is the answer to a call that became a task, as in the seed async-task-queue, for
// callers without the tasks extension. The text names the ID; the metadata has it for programs.
// agentName is the owner of the tools; "" is the tool itself.
func Queued(t ToolTask, agentName string) Result {
	row := &t.Task
	meta := struct {
		Agent     string `json:"agent"`
		TaskID    string `json:"taskId"`
		ToolName  string `json:"toolName"`
		Status    string `json:"status"`
		CreatedAt string `json:"createdAt"`
		UpdatedAt string `json:"updatedAt"`
	}{
		Agent: cmp.Or(agentName, row.Tool), TaskID: row.ID, ToolName: row.Tool, Status: SeedStatus(row.State),
		CreatedAt: seedTimeOf(row.CreatedAt), UpdatedAt: seedTimeOf(t.UpdatedAt()),
	}
	text := fmt.Sprintf("Task '%s' queued with id %s", row.Tool, row.ID)
	return Result{Content: plainContent(text), Metadata: mustMarshal(meta)}
}

func seedTimeOf(t time.Time) string { return t.UTC().Format(seedTime) }

// plainContent returns a content array with one text.
func plainContent(text string) json.RawMessage {
	return mustMarshal([]struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{{"text", text}})
}

// mustMarshal marshals structs of strings, which cannot fail.
func mustMarshal(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
