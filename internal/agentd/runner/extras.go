package runner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	maxSystemPrompt = 100_000 // bytes; it is one argument (maxArg), which may grow as it is quoted
	maxAllowedTools = 100
)

func checkSystemPrompt(text string) error {
	switch {
	case len(text) > maxSystemPrompt:
		return fmt.Errorf("system_prompt has %d bytes: %d at most", len(text), maxSystemPrompt)
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("system_prompt may not contain NUL characters")
	}
	return nil
}

// claudeTool is a tool's name, of the CLI's own or of an MCP server, and a
// pattern of what it may be used for. None can be read as an option, and none
// can be read as two.
var claudeTool = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]{0,63}|mcp__[A-Za-z0-9_.*-]{1,190})(\([^(),\x00-\x1f\x7f]{1,200}\))?$`)

func (c claudeRunner) CheckExtras(allowedTools []string, systemPrompt string) error {
	if len(allowedTools) > maxAllowedTools {
		return fmt.Errorf("allowed_tools has %d entries: %d at most", len(allowedTools), maxAllowedTools)
	}
	for _, tool := range allowedTools {
		name, pattern := splitTool(tool)
		switch {
		case !claudeTool.MatchString(tool):
			return fmt.Errorf("allowed_tools: %q is not the name of a tool, such as Read, Bash(git *) or mcp__server__tool", clip(tool))
		case pattern && c.opt.Permission == "bypassPermissions":
			return fmt.Errorf("allowed_tools: %q cannot be held to its pattern, because this agent runs with bypassPermissions: name %s as a whole, or leave it out", clip(tool), name)
		}
	}
	return checkSystemPrompt(systemPrompt)
}

// toolArgs has the CLI offer only the tools that a task allows, if it names
// any, and use without asking what the agent's configuration allows of them.
// A task never gets more than that: the permission mode is the agent's. The
// tools of the gateway are allowed in every mode: what they may do is up to
// the director.
func (c claudeRunner) toolArgs(only []string, gateway bool) []string {
	allowed := slices.Clone(c.opt.AllowedTools)
	var args []string
	if len(only) > 0 {
		args = append(args, "--tools="+strings.Join(builtin(only), ","))
		allowed = narrow(allowed, only)
	}
	switch {
	case gateway && len(only) > 0:
		allowed = append(allowed, slices.DeleteFunc(slices.Clone(only), func(tool string) bool { return !ofGateway(tool) })...)
	case gateway:
		allowed = append(allowed, "mcp__"+gatewayName)
	}
	if len(allowed) > 0 {
		args = append(args, "--allowedTools="+strings.Join(allowed, ","))
	}
	return args
}

// builtin are the names of the CLI's own tools among those.
func builtin(tools []string) []string {
	var names []string
	for _, tool := range tools {
		if name, _ := splitTool(tool); !strings.HasPrefix(name, "mcp__") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// narrow is what both lists allow: a name with a pattern is part of the name.
func narrow(granted, only []string) []string {
	var both []string
	for _, g := range granted {
		for _, o := range only {
			grantedName, grantedPart := splitTool(g)
			name, part := splitTool(o)
			var pick string
			switch {
			case grantedName != name:
				continue
			case !grantedPart:
				pick = o
			case !part || o == g:
				pick = g
			default:
				continue
			}
			if !slices.Contains(both, pick) {
				both = append(both, pick)
			}
		}
	}
	return both
}

func splitTool(tool string) (name string, pattern bool) {
	name, _, pattern = strings.Cut(tool, "(")
	return name, pattern
}

// clip makes a stranger's text fit for a message.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
	return oneLine(s, 100)
}

// tomlString quotes text as a basic string of TOML.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
