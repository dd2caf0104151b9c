package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// doctorFlags name what is looked at where no director answers for it.
var doctorFlags = []keyFlag{
	{"data", "data", "`folder` of a director that is not running, to look at"},
	{"store", "store", "`store` of one, such as sqlite:FILE or postgres://…"},
}

func (a *app) doctorCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, with the director and on this machine",
		Long: "Look for what is wrong: on this machine (configuration, data folder, coding CLIs on PATH), and with the\n" +
			"director, which looks at its store and the rows in it, its queue, its host and clock, its agents, its\n" +
			"tools, and the limits that hold for the programs it starts; and whether its events come here one by one.\n" +
			"Where no director answers, or with --data or --store, the store is looked at from here, and whether a\n" +
			"director could start. Nothing is changed. Each finding is ok, warn or fail, and says what to do;\n" +
			"docs/doctor.md has them all. The exit code is that of the worst: 0 all is well, 8 something warns, 1\n" +
			"something fails or no director answers.",
	}
	addKeyFlags(cmd.Flags(), doctorFlags)
	cmd.RunE = run(func(ctx context.Context, _ []string) error {
		chosen := given(cmd.Flags(), doctorFlags)
		cfg, found := a.localChecks(ctx, chosen)
		theirs, reached, err := a.directorChecks(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(chosen) > 0:
			theirs = a.examine(ctx, cfg)
		case !reached:
			theirs = append(theirs, a.examine(ctx, cfg)...)
		default:
			theirs = append(theirs, a.checkStream(ctx)...)
		}
		found = append(found, theirs...)
		if err := a.print(api.Doctor{Checks: found}, func() error { return a.showChecks(found) }); err != nil {
			return err
		}
		return sick(found)
	})
	return cmd
}

// examine looks at the store from here. cfg is nil where there is no
// configuration to say which.
func (a *app) examine(ctx context.Context, cfg *config.Config) []api.Check {
	if cfg == nil || a.roles.Examine == nil {
		return nil
	}
	return a.roles.Examine(ctx, *cfg)
}

// sick is the exit code of findings, about which all has been said: that of the
// worst.
func sick(checks []api.Check) error {
	worst := checkOK
	for _, c := range checks {
		if c.State == checkFail || (c.State == checkWarn && worst == checkOK) {
			worst = c.State
		}
	}
	switch worst {
	case checkFail:
		return &fault{exit: exitError, code: "error", message: "something fails", silent: true}
	case checkWarn:
		return &fault{exit: exitWarnings, code: "warnings", message: "something warns", silent: true}
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
func (a *app) directorChecks(ctx context.Context) (checks []api.Check, reached bool, err error) {
	const area = "director"
	failed := func(text, cure string) []api.Check {
		return []api.Check{{Area: area, State: checkFail, Text: text, Cure: cure}}
	}
	c, err := a.client(client.Options{})
	if err != nil {
		f := toFault(err)
		return failed(f.message, cmp.Or(f.hint, "see the configuration")), f.code != errNoDirector.code, nil
	}
	answer, err := c.Doctor(ctx)
	var refusal *client.Error
	switch {
	case err == nil:
		return answer.Checks, true, nil
	case ctx.Err() != nil:
		return nil, false, err
	case client.IsUnreachable(err):
		f := toFault(err)
		return failed(f.message, f.hint), false, nil
	case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
		return []api.Check{{Area: area, State: checkWarn, Text: "the director cannot look at itself: it is older than this command", Cure: "update it"}}, true, nil
	}
	f := toFault(err)
	return failed(strings.TrimSpace(f.message), cmp.Or(f.hint, "see the director's log")), true, nil
}
