package toolconf

import (
	"slices"
	"strings"
)

// Retired says what replaces a key of the seed's system that is no more, or
// "" for all other keys.
func Retired(key string) string {
	switch plainKey(key) {
	case "maxconcurrenttools":
		return "this key is retired: what bounds the calls of tools is the capacity of their queue, queues.NAME.concurrent, for all sessions together"
	case "paralleltoolcalls":
		return "this key is retired: calls of tools always run side by side, as far as queues.NAME.concurrent lets them; agent.llm.max_parallel_tool_calls bounds those of one step of our own agents"
	}
	return ""
}

// plainKey is a key in whichever way it is spelt: maxConcurrentTools,
// max-concurrent-tools, max_concurrent_tools.
func plainKey(key string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
}

// otherSections are those of .ai-agent.json and of coding CLIs' settings that
// are no matter of tools.
var otherSections = []string{
	"$schema", "accounting", "api", "cache", "defaults", "embed", "inputs", "logging", "models", "persistence", "pricing", "providers", "slack", "structuredOutput",
	"telemetry", "webSearch",
}

// elsewhere passes over the sections of other programs, with one line for all.
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

// foreignTop are the keys that a mcp-config.json may have beside its tools.
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
