package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Demo is an agent without costs: it prints a few lines for about a second
// and answers. Words in the prompt control it:
//
//	sleep 3s      run for just that long (any Go duration up to an hour)
//	print 1MB     print that much (KB, MB; at most 1000 MB)
//	exit 3        fail with that exit status
//	fail          fail
//	spend 0.25    report that many US dollars as its cost, and matching tokens, in parts while it runs
//	call browse for 3s
//	              halfway, call the director's tool of that name, with that
//	              duration; may be repeated, for one call after another
type Demo struct{ commonRunner }

var (
	demoSleep = regexp.MustCompile(`\bsleep ([0-9][0-9.a-zµ]*)\b`)
	demoPrint = regexp.MustCompile(`(?i)\bprint ([0-9]+) ?([KM]?)B\b`)
	demoExit  = regexp.MustCompile(`\bexit ([0-9]{1,3})\b`)
	demoSpend = regexp.MustCompile(`\bspend ([0-9]{1,4}(?:\.[0-9]{1,4})?)\b`)
	demoFail  = regexp.MustCompile(`\bfail\b`)
	demoCall  = regexp.MustCompile(`\bcall ([A-Za-z0-9_.-]{1,128}) for ([0-9][0-9.a-zµ]*)\b`)
)

// Inside is true: a run only sleeps and prints.
func (Demo) Inside() bool { return true }

// Model accepts every model and tier, because it uses none.
func (Demo) Model(model, tier, fallback string) (string, error) {
	for _, m := range []string{model, tier, fallback} {
		if m != "" {
			return m, nil
		}
	}
	return "demo", nil
}

// CheckBudget accepts any budget: a run reports what it spends.
func (Demo) CheckBudget(signalbox.Budget, string) error { return nil }

// Plan runs the prompt within this process.
func (Demo) Plan(t Task) (Plan, error) {
	return Plan{Func: func(ctx context.Context, out io.Writer) Outcome { return demo(ctx, t, out) }}, nil
}

func demo(ctx context.Context, t Task, out io.Writer) Outcome {
	began := time.Now()
	total, steps := time.Second, 4
	if m := demoSleep.FindStringSubmatch(t.Prompt); m != nil {
		if d, err := time.ParseDuration(m[1]); err == nil && d >= 0 && d <= time.Hour {
			total = d
		}
	}
	if total < 200*time.Millisecond {
		steps = 1
	}
	if m := demoPrint.FindStringSubmatch(t.Prompt); m != nil && !demoFlood(ctx, out, m) {
		return Outcome{}
	}
	var uses int64
	for i := 1; i <= steps; i++ {
		if !pause(ctx, time.Until(began.Add(total*time.Duration(i)/time.Duration(steps)))) {
			return Outcome{}
		}
		used := demoUsed(t.Prompt, i, steps)
		if t.Hear != nil {
			t.Hear(ProviderReport{Used: used})
		}
		fmt.Fprintf(out, "step %d of %d: %s\n", i, steps, oneLine(t.Prompt, 60))
		if why := used.Over(t.Budget); why != "" && i < steps {
			return Outcome{ErrType: OverBudget, ErrMessage: why, ToolCount: uses}
		}
		if i != (steps+1)/2 {
			continue
		}
		calling := time.Now()
		n, err := demoCalls(ctx, t, out)
		if uses = n; err != nil {
			return Outcome{ErrType: "tool_error", ErrMessage: err.Error(), ToolCount: uses}
		}
		began = began.Add(time.Since(calling)) // the remaining steps take as long as planned
	}
	return demoOutcome(t, uses)
}

// demoUsed is the usage of a run after this part of its steps.
func demoUsed(prompt string, step, steps int) (u Used) {
	words := int64(len(strings.Fields(prompt)))
	u.Tokens = api.TokenUsage{Input: words, Output: words + 4}
	if m := demoSpend.FindStringSubmatch(prompt); m != nil {
		u.USD, _ = strconv.ParseFloat(m[1], 64)
		u.Tokens = api.TokenUsage{Input: int64(u.USD * 100_000), Output: int64(u.USD * 10_000)}
	}
	u.USD *= float64(step) / float64(steps)
	u.Tokens.Input = u.Tokens.Input * int64(step) / int64(steps)
	u.Tokens.Output = u.Tokens.Output * int64(step) / int64(steps)
	return u
}

func demoOutcome(t Task, uses int64) Outcome {
	code := 0
	o := Outcome{ExitCode: &code, ToolCount: uses}
	if m := demoExit.FindStringSubmatch(t.Prompt); m != nil {
		code, _ = strconv.Atoi(m[1])
	} else if demoFail.MatchString(t.Prompt) {
		code = 1
	}
	if code != 0 {
		o.ErrType, o.ErrMessage = "exit_nonzero", fmt.Sprintf("the demo agent was asked to fail: exit status %d", code)
		return o
	}
	o.Output = "Demo agent finished: " + oneLine(t.Prompt, 200)
	return o
}

// demoFlood prints the requested size, in lines of 64 bytes.
func demoFlood(ctx context.Context, out io.Writer, m []string) bool {
	n, _ := strconv.Atoi(m[1])
	switch strings.ToUpper(m[2]) {
	case "K":
		n *= 1 << 10
	case "M":
		n *= 1 << 20
	}
	n = min(n, 1000<<20)
	line := strings.Repeat("signalbox demo .", 4)[:63] + "\n"
	block := []byte(strings.Repeat(line, 512))
	for n > 0 && ctx.Err() == nil {
		b := block[:min(n, len(block))]
		_, _ = out.Write(b)
		n -= len(b)
	}
	return ctx.Err() == nil
}

// pause waits for d, and reports whether ctx is still valid.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// demoPatience is how long a call waits for its director to return.
const demoPatience = 2 * time.Minute

// demoCalls makes the tool calls that a prompt asks for, one after the other,
// and returns how many it made.
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

// demoUse makes one call and prints its progress. Calls of the demo have no
// side effects, so a call whose director was killed is repeated when the
// director is back.
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

// demoExecution names the run to the director, which accepts it only with the
// agent's own token.
func demoExecution(t Task) string {
	if env(t.Env, "SIGNALBOX_TOKEN") == "" {
		return ""
	}
	return env(t.Env, "SIGNALBOX_QUEUE_ID")
}

// demoText returns the first text of a tool's answer.
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
