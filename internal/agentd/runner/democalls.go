package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// demoPatience is how long a call waits for its director to come back.
const demoPatience = 2 * time.Minute

// demoCalls makes the calls of tools that a prompt asks for, one after the
// other, and returns how many it made.
func demoCalls(ctx context.Context, t Task, out io.Writer) (made int64, err error) {
	asked := demoCall.FindAllStringSubmatch(t.Prompt, -1)
	if len(asked) == 0 {
		return 0, nil
	}
	director := env(t.Env, "SIGNALBOX_DIRECTOR")
	if director == "" {
		return 0, errors.New("the prompt asks for a tool, and this agent knows no director that has any: start it with --director")
	}
	c, err := client.New(director, client.Options{Token: env(t.Env, "SIGNALBOX_TOKEN")})
	if err != nil {
		return 0, fmt.Errorf("the director's address: %w", err)
	}
	for _, m := range asked {
		long, err := time.ParseDuration(m[2])
		if err != nil || long < 0 || long > time.Hour {
			return made, fmt.Errorf("call %s for %s: want a duration up to an hour, such as 3s", m[1], m[2])
		}
		if err := demoUse(ctx, c, t, m[1], long, out); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}

// demoUse makes one call, and prints how it fares. What the demo calls has no
// effect: so a call whose director was killed is made again when that is back.
func demoUse(ctx context.Context, c *client.Client, t Task, tool string, long time.Duration, out io.Writer) error {
	arguments, err := json.Marshal(map[string]any{"about": oneLine(t.Prompt, 80), "seconds": long.Seconds()})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "calling %s\n", tool)
	at := 0
	opts := client.ToolOptions{Execution: demoExecution(t), Progress: func(p api.ToolProgress) {
		if p.Position > 0 && p.Position != at {
			at = p.Position
			fmt.Fprintf(out, "waiting for %s: position %d in its line\n", tool, at)
		}
	}}
	got, err := c.CallTool(ctx, tool, api.ToolCall{Arguments: arguments}, opts)
	for deadline := time.Now().Add(demoPatience); client.IsUnreachable(err) && time.Now().Before(deadline); {
		if !pause(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
		at = 0
		got, err = c.CallTool(ctx, tool, api.ToolCall{Arguments: arguments}, opts)
	}
	if err != nil {
		return fmt.Errorf("the call of %s failed: %w", tool, err)
	}
	said := demoText(got)
	if got.IsError {
		return fmt.Errorf("%s failed: %s", tool, said)
	}
	fmt.Fprintf(out, "%s answered: %s\n", tool, said)
	return nil
}

// demoExecution names the run to the director, which believes it of the
// agent's own token alone.
func demoExecution(t Task) string {
	if env(t.Env, "SIGNALBOX_TOKEN") == "" {
		return ""
	}
	return env(t.Env, "SIGNALBOX_QUEUE_ID")
}

// demoText is the first text of a tool's answer.
func demoText(r api.ToolResult) string {
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(r.Content, &blocks) != nil {
		return ""
	}
	for _, b := range blocks {
		if b.Type == "text" {
			return oneLine(b.Text, 200)
		}
	}
	return ""
}
