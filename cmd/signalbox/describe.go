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

// defaultPermission is the runners' own, the safest that works unattended.
var defaultPermission = map[string]string{"claude": "acceptEdits", "codex": "workspace-write", "opencode": "ask (what its configuration would ask about is refused)"}

// accountKeys are the variables that make a CLI spend an API account rather
// than the one it is logged in with.
var accountKeys = map[string][]string{
	"claude":   {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
	"codex":    {"CODEX_API_KEY", "OPENAI_API_KEY"},
	"opencode": {"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
}

func account(kind string) string {
	for _, key := range accountKeys[kind] {
		if os.Getenv(key) != "" {
			return "the account of " + key
		}
	}
	return "the account that " + kind + " is logged in with"
}
