package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, with the director and on this machine",
		Long: "Look for what is wrong: on this machine (configuration, data folder, coding CLIs on PATH), and with the\n" +
			"director, which looks at its store and the rows in it, its queue, its agents, its tools, and the limits\n" +
			"that hold for the programs it starts. Each finding is ok, warn or fail, and says what to do. The exit\n" +
			"code is 1 where something fails or no director answers, else 0.",
		Args: cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error {
			found := a.localChecks()
			theirs, err := a.directorChecks(ctx)
			if err != nil {
				return err
			}
			found = append(found, theirs...)
			if err := a.print(api.Doctor{Checks: found}, func() error { return a.showChecks(found) }); err != nil {
				return err
			}
			return sick(found)
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// sick is the exit code of findings, about which all has been said.
func sick(checks []api.Check) error {
	for _, c := range checks {
		if c.State == checkFail {
			return &fault{exit: exitError, code: "error", message: "something fails", silent: true}
		}
	}
	return nil
}

// The states of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

var checkColours = map[string]string{checkOK: green, checkWarn: yellow, checkFail: red}

func (a *app) showChecks(checks []api.Check) error {
	bad, odd := 0, 0
	for _, c := range checks {
		switch c.State {
		case checkFail:
			bad++
		case checkWarn:
			odd++
		}
		state := a.paint(checkColours[c.State], fmt.Sprintf("%-4s", clean(c.State)))
		if err := a.say("%s  %-9s %s", state, clean(c.Area), clean(c.Text)); err != nil {
			return err
		}
		if c.Cure != "" {
			if err := a.say("                → %s", clean(c.Cure)); err != nil {
				return err
			}
		}
	}
	if bad+odd == 0 {
		return a.say("All is well.")
	}
	return a.say("%s, %s.", plural(bad, "failure", "failures"), plural(odd, "warning", "warnings"))
}

// directorChecks asks the director. That none answers is a finding too.
func (a *app) directorChecks(ctx context.Context) ([]api.Check, error) {
	const area = "director"
	failed := func(text, cure string) []api.Check {
		return []api.Check{{Area: area, State: checkFail, Text: text, Cure: cure}}
	}
	c, err := a.client(client.Options{})
	if err != nil {
		f := toFault(err)
		return failed(f.message, orElse(f.hint, "see the configuration")), nil
	}
	answer, err := c.Doctor(ctx)
	var refusal *client.Error
	switch {
	case err == nil:
		return answer.Checks, nil
	case ctx.Err() != nil:
		return nil, err
	case client.IsUnreachable(err):
		f := toFault(err)
		return failed(f.message, f.hint), nil
	case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
		return []api.Check{{Area: area, State: checkWarn, Text: "the director cannot look at itself: it is older than this command", Cure: "update it"}}, nil
	}
	f := toFault(err)
	return failed(strings.TrimSpace(f.message), orElse(f.hint, "see the director's log")), nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
