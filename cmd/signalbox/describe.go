package main

import (
	"cmp"
	"fmt"
	"os"
)

// describe prints what a person must know before work goes to an agent: its
// CLI, where it works, with which permissions, and whose account it spends.
func (c *child) describe() {
	a := c.s.cfg.Agent
	what := "demo agent, which streams a few lines and touches nothing"
	if c.found.Path != "" {
		what = fmt.Sprintf("%s (%s)", cmp.Or(c.found.Version, "version unknown"), c.found.Path)
	}
	if c.kind == "llm" {
		c.describeLLM()
		return
	}
	workDir := a.WorkDir
	if workDir == "" {
		workDir, _ = os.Getwd() // unknown is printed as empty
	}
	fmt.Fprintf(c.s.out.Out, "  %-9s %s\n", c.name, what)
	fmt.Fprintf(c.s.out.Out, "  %-9s   working directory %s · HOME %s\n", "", workDir, cmp.Or(a.Home, os.Getenv("HOME")))
	if c.kind == "demo" {
		return
	}
	fmt.Fprintf(c.s.out.Out, "  %-9s   permission mode %s · spends %s\n", "", cmp.Or(a.PermissionMode, defaultPermission[c.kind]), account(c.kind))
}

// describeLLM is describe for the agent that is a model with tools: it has no
// CLI and no folder, but an endpoint and the tools of a gateway.
func (c *child) describeLLM() {
	a := c.s.cfg.Agent
	keys := accountKeys[a.LLM.Provider]
	spends := "no account: " + keys[0] + " is not set"
	switch {
	case a.LLM.APIKey != "":
		spends = "the account of agent.llm.api_key"
	case os.Getenv(keys[0]) != "":
		spends = "the account of " + keys[0]
	case a.LLM.BaseURL != "":
		spends = "no account: it has no API key"
	}
	fmt.Fprintf(c.s.out.Out, "  %-9s model %s (%s)\n", c.name, cmp.Or(a.Model, "of each task"), a.LLM.Provider)
	fmt.Fprintf(c.s.out.Out, "  %-9s   tools %s · spends %s\n", "", llmTools(a.LLM.Tools), spends)
}

func llmTools(tools string) string {
	switch tools {
	case "auto":
		return "of this director, if it has any"
	case "director":
		return "of this director"
	case "none":
		return "none"
	}
	return "of an MCP endpoint" // its URL may hold a secret
}

// defaultPermission is the runners' own, the safest that works unattended.
var defaultPermission = map[string]string{"claude": "acceptEdits", "codex": "workspace-write", "opencode": "ask (what its configuration would ask about is refused)"}

// accountKeys are the variables that make a CLI spend an API account rather
// than the one it is logged in with.
var accountKeys = map[string][]string{
	"claude":   {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
	"codex":    {"CODEX_API_KEY", "OPENAI_API_KEY"},
	"opencode": {"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
	// of kind llm, by its provider
	"openai":    {"OPENAI_API_KEY"},
	"anthropic": {"ANTHROPIC_API_KEY"},
}

func account(kind string) string {
	for _, key := range accountKeys[kind] {
		if os.Getenv(key) != "" {
			return "the account of " + key
		}
	}
	return "the account that " + kind + " is logged in with"
}
