package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// doctorFlags select a store to check without its director.
var doctorFlags = []keyFlag{
	{"data", "data", "check the data `folder` of a director that is not running"},
	{"store", "store", "check the `store` of one, such as sqlite:FILE or postgres://…"},
}

func (a *app) doctorCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for problems, with the director and on this machine",
		Long: "Look for problems: on this machine (configuration, data folder, coding CLIs on PATH), and with the director,\n" +
			"which checks its store and the rows in it, its queue, its host and clock, its agents, its tools, and the\n" +
			"limits of the programs it starts. The command also checks that the director's events arrive one by one.\n" +
			"If no director answers, or with --data or --store, it checks the store itself, and whether a director could\n" +
			"start. Nothing is changed. Each finding is ok, warn or fail, and says what to do; docs/doctor.md lists them\n" +
			"all. The exit code is that of the worst finding: 0 all is well, 8 something warns, 1 something fails or no\n" +
			"director answers.",
	}
	addKeyFlags(cmd.Flags(), doctorFlags)
	cmd.RunE = run(func(ctx context.Context, _ []string) error {
		chosen := givenFlags(cmd.Flags())
		cfg, found := a.localChecks(ctx, chosen)
		theirs, reached, err := a.directorChecks(ctx)
		if err != nil {
			return err
		}
		look := len(chosen) > 0 // check the store itself, without the director
		if !look {
			found = append(found, theirs...)
		}
		if !look && reached {
			found = append(found, a.checkStream(ctx)...)
		} else if cfg != nil && a.roles.Examine != nil {
			found = append(found, a.roles.Examine(ctx, *cfg)...)
		}
		if err := a.print(api.Doctor{Checks: found}, func() { a.showChecks(found) }); err != nil {
			return err
		}
		return checksFault(found)
	})
	return cmd
}

// checksFault is the exit code of the worst finding. The findings are printed already.
func checksFault(checks []api.Check) error {
	switch has := func(state string) bool {
		return slices.ContainsFunc(checks, func(c api.Check) bool { return c.State == state })
	}; {
	case has(checkFail):
		return &fault{exit: exitError, code: "error", message: "something fails", silent: true}
	case has(checkWarn):
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

func checked(area, text string) api.Check {
	return api.Check{Area: area, State: checkOK, Text: text}
}

func warning(area, text, cure string) api.Check {
	return api.Check{Area: area, State: checkWarn, Text: text, Cure: cure}
}

func failing(area, text, cure string) api.Check {
	return api.Check{Area: area, State: checkFail, Text: text, Cure: cure}
}

var checkColours = map[string]string{checkOK: green, checkWarn: yellow, checkFail: red}

func (a *app) showChecks(checks []api.Check) {
	count := map[string]int{}
	for _, c := range checks {
		count[c.State]++
		a.say("%s  %-9s %s", a.paint(checkColours[c.State], fmt.Sprintf("%-4s", clean(c.State))), clean(c.Area), clean(c.Text))
		if c.Cure != "" {
			a.say("                → %s", clean(c.Cure))
		}
	}
	if count[checkFail]+count[checkWarn] == 0 {
		a.say("All is well.")
	} else {
		a.say("%s, %s.", plural(count[checkFail], "failure", "failures"), plural(count[checkWarn], "warning", "warnings"))
	}
}

// directorChecks returns the director's own checks. An unreachable director is a
// finding, too.
func (a *app) directorChecks(ctx context.Context) (checks []api.Check, reached bool, err error) {
	const area = "director"
	c, err := a.client(client.Options{})
	if err != nil {
		f := toFault(err)
		return []api.Check{failing(area, f.message, cmp.Or(f.hint, "see the configuration"))}, f.code != errNoDirector.code, nil
	}
	answer, err := c.Doctor(ctx)
	var refusal *client.Error
	switch {
	case err == nil:
		return answer.Checks, true, nil
	case ctx.Err() != nil:
		return nil, false, err
	case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
		return []api.Check{warning(area, "the director has no checks: it is older than this command", "update the director")}, true, nil
	}
	f := toFault(err)
	return []api.Check{failing(area, strings.TrimSpace(f.message), cmp.Or(f.hint, "see the director's log"))}, !client.IsUnreachable(err), nil
}

// codingCLIs are the programs for which signalbox up starts an agent.
var codingCLIs = []string{"claude", "codex", "opencode"}

// localChecks need no director. The configuration is nil if it is invalid.
func (a *app) localChecks(ctx context.Context, chosen []config.Flag) (*config.Config, []api.Check) {
	cfg, found := a.checkConfig(chosen)
	if found.State == checkFail {
		return nil, []api.Check{found, a.checkPath()}
	}
	checks := []api.Check{found, checkData(cfg.Data), a.checkPath()}
	if a.roles.CLIs != nil {
		checks = append(checks, a.roles.CLIs(ctx, cfg)...)
	}
	return &cfg, checks
}

func (a *app) checkConfig(chosen []config.Flag) (config.Config, api.Check) {
	const area = "config"
	cfg, err := a.load(config.Sources{Flags: chosen})
	var many config.Problems
	switch {
	case errors.As(err, &many):
		text := strings.Join(strings.Fields(err.Error()), " ") // on one line
		return cfg, failing(area, text, "correct the file; docs/configuration.md has the keys")
	case err != nil:
		return cfg, failing(area, err.Error(), "see that the file can be read")
	case cfg.File == "":
		return cfg, checked(area, "there is no configuration file: the defaults apply")
	}
	for _, n := range cfg.Tools.Notes {
		if n.Warning {
			return cfg, warning(area, cfg.File+" is valid, with notes on tools, such as "+n.String(), "the director logs all of them when it starts")
		}
	}
	return cfg, checked(area, cfg.File+" is right")
}

// checkData checks the data folder. A director creates it if it is missing.
func checkData(dir string) api.Check {
	const area = "data"
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checked(area, dir+" does not exist: a director creates it")
	case err != nil:
		return failing(area, "the data folder: "+err.Error(), "choose another one with --data, or fix its owner and mode")
	case !info.IsDir():
		return failing(area, dir+" is not a folder", "choose another one with --data")
	case runtime.GOOS == "windows": // which has no permission bits
		return checked(area, dir+" exists; who can read it is not checked on Windows")
	case info.Mode().Perm()&0o077 != 0:
		return warning(area, dir+" can be read by others", "chmod 700 "+dir)
	}
	return checked(area, dir+" exists, and others cannot read it")
}

func (a *app) checkPath() api.Check {
	have := slices.DeleteFunc(slices.Clone(codingCLIs), func(name string) bool { return !a.onPath(name) })
	if len(have) == 0 {
		return checked("agents", "no coding CLI ("+strings.Join(codingCLIs, ", ")+") on PATH: signalbox up starts the demo agent")
	}
	return checked("agents", "on PATH, for signalbox up: "+strings.Join(have, ", "))
}

func (a *app) onPath(name string) bool {
	path, _ := a.io.Env("PATH")
	for _, dir := range filepath.SplitList(path) {
		info, err := os.Stat(filepath.Join(dir, name))
		if filepath.IsAbs(dir) && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

const (
	// streamWait limits the check of the stream, which sends an event each second.
	streamWait = 6 * time.Second
	// streamEvents is how many events after the first are compared.
	streamEvents = 3
	// maxBuffering is how much shorter the time between two arrivals may be than
	// the time between their sending: a larger difference means that a proxy buffers.
	maxBuffering = 700 * time.Millisecond
	// maxClockSkew is the smallest difference of the clocks that is reported.
	maxClockSkew = 2 * time.Second
)

// arrival is when an event of the stream was sent and received.
type arrival struct{ sent, received time.Time }

// checkStream checks that no proxy buffers the director's events, and compares the
// clocks. It tries twice: a busy client may read an event late once, a buffering
// proxy delays every time.
func (a *app) checkStream(ctx context.Context) []api.Check {
	checks := a.readStream(ctx)
	if len(checks) > 0 && checks[0].State == checkFail && ctx.Err() == nil {
		return a.readStream(ctx)
	}
	return checks
}

// readStream reads a few events of the live stream and checks when they arrived.
func (a *app) readStream(ctx context.Context) []api.Check {
	c, err := a.client(client.Options{Tries: 1})
	if err != nil {
		return nil // directorChecks has reported it
	}
	ctx, cancel := context.WithTimeout(ctx, streamWait)
	defer cancel()
	var got []arrival
	for e, err := range c.Live(ctx) {
		if err != nil {
			var refusal *client.Error
			if errors.As(err, &refusal) && (refusal.Status == http.StatusNotFound || refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden) {
				return nil // no such route, or not allowed
			}
			break
		}
		got = append(got, arrival{e.Live.At, time.Now()})
		if len(got) > streamEvents {
			break
		}
	}
	return checkArrivals(got)
}

const areaEvents = "events"

// checkArrivals checks the arrivals. The first event is the snapshot, whose size may
// delay it.
func checkArrivals(got []arrival) []api.Check {
	const cure = "let the proxy pass text/event-stream responses through unbuffered (nginx: proxy_buffering off; gzip and caches off), and keep them open for a minute"
	if len(got) <= streamEvents {
		return []api.Check{failing(areaEvents,
			"events are late: the director sends one each second, but "+plural(len(got), "event", "events")+" arrived in "+streamWait.String(), cure)}
	}
	first, last := got[1], got[len(got)-1]
	sent, received := last.sent.Sub(first.sent), last.received.Sub(first.received)
	if sent-received > maxBuffering {
		return []api.Check{failing(areaEvents,
			"something on the way buffers events: those sent in "+sent.Round(10*time.Millisecond).String()+" arrived within "+received.Round(10*time.Millisecond).String(), cure)}
	}
	out := []api.Check{checked(areaEvents, "events arrive one by one, as they are sent")}
	if off := last.received.Sub(last.sent).Round(10 * time.Millisecond); off.Abs() >= maxClockSkew {
		out = append(out, warning("clock", "the clock here is "+off.String()+" off the director's",
			"synchronize both clocks; ages that are shown are off by that much"))
	}
	return out
}
