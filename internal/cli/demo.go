package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// DemoOptions are what signalbox demo is told. It reads no configuration.
type DemoOptions struct {
	Out, Err io.Writer
	Addr     string        // host:port; "": any free port of the loopback address
	Keep     bool          // a clean end leaves the data
	Seed     uint64        // of what is submitted when
	Pace     time.Duration // from one submission to the next, about
	// Keys are those that a person presses; nil: there is nobody.
	Keys io.Reader
}

func (a *app) demoCmd() *cobra.Command {
	opts := DemoOptions{Out: a.io.Out, Err: a.io.Err}
	pace := span(4 * time.Second)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Look around: three demo agents, two tool queues, and work for them",
		Long: "Look around, without an account, a database or a key. A director starts on this host alone, with three demo agents\n" +
			"(researcher, coder, writer), two tool queues (browser with 2 slots, github with 1), a schedule, and a gentle stream\n" +
			"of tasks. The address of the dashboard is printed; signalbox top and the other commands find it by themselves.\n\n" +
			"Its data lies in a folder of its own below the temporary folder, and goes when the demo ends. One that was killed is\n" +
			"found again by the next, which says what it recovered.\n\n" +
			"Keys at a terminal: w wedges an agent, as a hung one would be: the dashboard shows the way out. u undoes that,\n" +
			"s submits a task, q quits. Without a terminal it runs until it is told to stop.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pace < span(100*time.Millisecond) {
				return usage("--pace: want 100ms or more, got %s", time.Duration(pace))
			}
			opts.Pace = time.Duration(pace)
			restore := func() error { return nil }
			if a.io.TTY != nil {
				var err error
				if restore, err = a.io.TTY.Raw(); err != nil {
					return fmt.Errorf("the terminal cannot be made raw: %w", err)
				}
				opts.Keys, opts.Out, opts.Err = a.io.In, rawLines{a.io.Out}, rawLines{a.io.Err}
			}
			err := a.roles.Demo(cmd.Context(), opts)
			if back := restore(); back != nil {
				a.note("The terminal could not be set back (%v): the command reset helps.", back)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Addr, "addr", "", "`host:port` to listen on, of the loopback address (default: the one of the demo before, else any free port)")
	f.BoolVar(&opts.Keep, "keep", false, "leave the data in its folder at the end")
	f.Uint64Var(&opts.Seed, "seed", 1, "`number` that decides what is submitted when")
	f.Var(&pace, "pace", "about how long from one task to the next")
	cmd.AddCommand(a.demoToolCmd())
	return cmd
}

// rawLines writes lines to a terminal that is raw.
type rawLines struct{ w io.Writer }

func (r rawLines) Write(p []byte) (int, error) {
	_, err := r.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}

// demoToolCmd is the command behind the demo's tools: it takes as long as it
// is asked to, and answers. A shell would do, where there is one.
func (a *app) demoToolCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "tool",
		Short:  "Be a tool of the demo: read a call from standard input",
		Hidden: true,
		RunE:   run(func(ctx context.Context, _ []string) error { return a.demoTool(ctx) }),
	}
}

// maxDemoCall bounds one call of a tool of the demo.
const maxDemoCall = time.Minute

func (a *app) demoTool(ctx context.Context) error {
	var call struct {
		Tool  string
		Input struct {
			About   string
			Seconds float64
		}
	}
	if err := json.NewDecoder(a.io.In).Decode(&call); err != nil {
		return fmt.Errorf("want a call as JSON on standard input: %w", err)
	}
	wait := min(max(0, time.Duration(call.Input.Seconds*float64(time.Second))), maxDemoCall)
	select {
	case <-a.io.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	return a.say("%s looked into “%s” for %s and found what it was asked for.", clean(call.Tool), clean(firstLine(call.Input.About)), wait)
}
