package toolconf

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// Source says where tools are configured.
type Source struct {
	Own   Own
	Files []File
	Env   conffile.Env
	Home  string // replaces ~; "": unknown
	Dir   string // folder in which the program was started
}

// Own are the sections of signalbox.yaml that configure tools.
type Own struct {
	Name  string // of the file, as the user knows it
	Base  string // its folder
	Pairs []conffile.Pair
}

// File is a tools file.
type File struct {
	Name string // as the user knows it
	Path string // absolute
	From string // what names it: file:line, a variable or a flag
}

// The keys of Own.
const (
	keyQueues   = "queues"
	keyServers  = "mcpServers"
	keyRest     = "restTools"
	keyOpenAPI  = "openapiSpecs"
	keyCommands = "commandTools"
)

// Load reads and merges all sources and returns all errors in them. If there is one,
// the Config is zero.
func Load(src Source) (Config, conffile.Problems) {
	m := newMerge()
	if len(src.Own.Pairs) > 0 {
		r := reader{name: src.Own.Name, strict: true, base: src.Own.Base, home: src.Home, dir: src.Dir, env: src.Env, merge: m}
		r.read(&conffile.Node{Form: conffile.Section, Pairs: src.Own.Pairs})
	}
	seen := map[string]bool{}
	for _, file := range src.Files {
		if !seen[file.Path] {
			seen[file.Path] = true
			m.file(file, src)
		}
	}
	return m.finish()
}

// file reads a tools file.
func (m *merge) file(file File, src Source) {
	root, format, err := conffile.Read(file.Path)
	r := reader{name: file.Name, strict: format == conffile.YAML, base: filepath.Dir(file.Path), home: src.Home, dir: src.Dir, env: src.Env, merge: m}
	var bad *conffile.Error
	switch {
	case errors.As(err, &bad) && bad.Line > 0:
		m.problem(conffile.Where(file.Name, bad.Line), "", bad.Text)
	case err != nil:
		m.problem(file.From, "tools", file.Name+": "+err.Error())
	case root == nil:
		m.note(file.Name, "", "the file is empty", true)
	default:
		r.read(root)
	}
}

// read reads a whole file.
func (r *reader) read(root *conffile.Node) {
	top := r.open(root, root.Line, "")
	if top == nil {
		return
	}
	before := len(r.merge.problems)
	r.queues(top)
	r.each(top, keyServers, foreignServer, r.server)
	r.each(top, keyRest, foreignRest, r.rest)
	r.each(top, keyOpenAPI, foreignRest, r.openapi)
	r.each(top, keyCommands, foreignCommand, r.commandTool)
	r.toolList(top)
	concurrent := 0 // limit for async commands
	top.whole(&concurrent, 1, signalbox.MaxAgentSlots, "maxConcurrent", "maxParallelTasks")
	r.merge.maxConcurrent = max(r.merge.maxConcurrent, concurrent)
	r.elsewhere(top)
	top.finish(foreignTop)
	if _, queues := top.pairs[keyQueues]; r.named == 0 && !queues && !r.strict && len(r.merge.problems) == before {
		r.merge.note(r.name, "", "the file names no tools: want them under "+keyServers+", "+keyRest+", "+keyOpenAPI+" or "+keyCommands, true)
	}
}

// entries calls f for the entries of the section of a key.
func (s *section) entries(key string, f func(p conffile.Pair, key string)) {
	pair, _, ok := s.take(key)
	if !ok {
		return
	}
	if all := s.open(pair.Value, pair.Line, key); all != nil {
		s.named += len(all.list)
		for _, p := range all.list {
			f(p, all.sub(p.Key))
		}
	}
}

// each reads the entries of a section that are not switched off.
func (r *reader) each(top *section, key string, foreign map[string]string, read readEntry) {
	top.entries(key, func(p conffile.Pair, key string) {
		if s := r.open(p.Value, p.Line, key); s != nil && !s.off() {
			s.entry(p.Key, foreign, read)
		}
	})
}

// off reports whether an entry is switched off. Its other keys are then not read:
// their variables need not be set.
func (s *section) off() bool {
	on, off := true, false
	s.boolean(&off, "disabled")
	s.boolean(&on, "enabled")
	if off = off || !on; off {
		s.merge.note(s.where(s.line), s.key, "it is switched off and left out", false)
	}
	return off
}

// readEntry reads an entry and returns a function that adds it.
type readEntry func(name string, s *section) (add func())

// entry reads an entry, and adds it if it has no errors.
func (s *section) entry(name string, foreign map[string]string, read readEntry) {
	before := len(s.merge.problems)
	s.filled = nil
	add := read(name, s)
	s.finish(foreign)
	if len(s.merge.problems) == before {
		add()
	}
}

// Retired says what replaces a retired key of the seed's system, or "" for all other
// keys.
func Retired(key string) string {
	switch plainKey(key) {
	case "maxconcurrenttools":
		return "this key is retired: what bounds the calls of tools is the capacity of their queue, queues.NAME.concurrent, for all sessions together"
	case "paralleltoolcalls":
		return "this key is retired: calls of tools always run side by side, as far as queues.NAME.concurrent lets them; agent.llm.max_parallel_tool_calls bounds those of one step of our own agents"
	}
	return ""
}

// plainKey is the same for all spellings of a key: maxConcurrentTools,
// max-concurrent-tools, max_concurrent_tools.
func plainKey(key string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
}

// otherSections are the sections of .ai-agent.json and of coding CLIs' settings that
// have nothing to do with tools.
var otherSections = []string{
	"$schema", "accounting", "api", "cache", "defaults", "embed", "inputs", "logging", "models", "persistence", "pricing", "providers", "slack", "structuredOutput",
	"telemetry", "webSearch",
}

// elsewhere skips the sections of other programs, with one note for all.
func (r *reader) elsewhere(top *section) {
	if r.strict {
		return
	}
	var ignored []string
	for _, pair := range top.list {
		if !slices.Contains(otherSections, pair.Key) {
			continue
		}
		top.known = append(top.known, pair.Key)
		ignored = append(ignored, pair.Key)
		if pair.Key == "defaults" {
			for _, p := range pair.Value.Pairs {
				if text := Retired(p.Key); text != "" {
					r.problem(p.Line, "defaults."+p.Key, text)
				}
			}
		}
	}
	if len(ignored) > 0 {
		r.merge.note(r.name, "", "these sections are of other programs and are ignored: "+strings.Join(ignored, ", "), false)
	}
}

const (
	notAsked = "whether a call needs a person's word is up to the caller"
	noOAuth  = "the gateway does not sign in for itself: put a token into headers"
	noUse    = "it means nothing here"
)

// foreignServer are the keys that coding CLIs know for a server.
var foreignServer = map[string]string{
	"alwaysAllow": notAsked, "autoApprove": notAsked, "autoApproved": notAsked, "trust": notAsked,
	"auth": noOAuth, "authProviderType": noOAuth, "headersHelper": noOAuth, "oauth": noOAuth, "oauthScopes": noOAuth, "oauth_resource": noOAuth,
	"envFile": "variables are not read from files: put them into env", "watchPaths": "servers are not started anew when files change",
	"alwaysLoad": noUse, "cache": noUse, "description": noUse, "dev": noUse, "gallery": noUse, "iconPath": noUse, "name": noUse, "note": noUse,
	"sandbox": noUse, "toolSchemas": noUse, "version": noUse,
}

// foreignRest are the keys that .ai-agent.json knows for a REST tool.
var foreignRest = map[string]string{
	"cache":         "answers are not kept",
	"streaming":     "an answer is taken as a whole",
	"complexParams": noUse, "complexQueryParamNames": noUse, "hasComplexQueryParams": noUse, "queryParamsFormat": noUse,
}

// foreignTop are the keys that a mcp-config.json may have besides its tools.
var foreignTop = map[string]string{
	"resources": "the gateway hands on tools only", "prompts": "the gateway hands on tools only",
	"toolWorkers":          "each call starts its program anew",
	"maxParallelSyncCalls": "what bounds the calls of tools is the capacity of their queue, queues.NAME.concurrent",
	"taskLogTailBytes":     "the last 128 KiB of what a run prints are kept",
	"agent":                noUse, "capabilities": noUse, "description": noUse, "name": noUse, "tags": noUse, "version": noUse,
}

// foreignCommand are the keys that it may have for a tool.
var foreignCommand = map[string]string{
	"worker":            "each call starts its program anew",
	"taskLogRetention":  "the last 128 KiB of what a run prints are kept",
	"providerExecution": "there is no such provider here",
	"continuationTool":  noUse, "taskMessageTool": noUse, "outputSchema": noUse, "annotations": noUse, "capabilities": noUse, "tags": noUse, "name": noUse,
}
