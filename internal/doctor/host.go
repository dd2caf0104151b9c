package doctor

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox/api"
)

// Open files below which a look warns and fails: each stream, agent and call
// holds one, and the director lets 2,000 streams be open at once.
const (
	fewFiles    = 4096
	tooFewFiles = 256
)

// jumped is from when on a change of the calendar is worth a word.
const jumped = 2 * time.Second

// Host looks at the limits that the system sets this process, and at its clock.
// started is when the process did, as time.Now gave it then.
func Host(started time.Time) Look {
	return func(context.Context, bool) []api.Check {
		out := append([]api.Check{openFiles()}, bounds(groupOf())...)
		now := time.Now()
		return append(out, clock(now.Sub(started), now.Round(0).Sub(started.Round(0))))
	}
}

func openFiles() api.Check {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return warning(areaHost, "use a system that says it", "how many files may be open cannot be told: %v", err)
	}
	return filesCheck(l.Cur)
}

func filesCheck(most uint64) api.Check {
	const cure = "raise LimitNOFILE= of the unit, or ulimit -n: each stream, agent and call holds a file"
	switch {
	case most < tooFewFiles:
		return failure(areaHost, cure, "the director may open %d files", most)
	case most < fewFiles:
		return warning(areaHost, cure, "the director may open %d files", most)
	}
	if most > 1<<40 {
		return fine(areaHost, "the director may open as many files as it likes")
	}
	return fine(areaHost, "the director may open %d files", most)
}

// bound is a limit of the control group that this process is in.
type bound struct {
	name, unit string
	used, most uint64
}

// bounds warns where little is left of what the control group allows.
func bounds(all []bound) []api.Check {
	var out []api.Check
	for _, b := range all {
		text := fmt.Sprintf("%d of %d %s of its control group are in use (%s)", b.used, b.most, b.unit, b.name)
		cure := "raise " + b.name + " of the unit or container: at the limit the system kills, or refuses to start, what the director runs"
		switch {
		case b.most == 0 || b.used >= b.most:
			out = append(out, failure(areaHost, cure, "%s", text))
		case b.used/9 >= b.most/10:
			out = append(out, warning(areaHost, cure, "%s", text))
		default:
			out = append(out, fine(areaHost, "%s", text))
		}
	}
	return out
}

// clock compares how much time went by according to the calendar, which can be
// set, with how much really did.
func clock(went, said time.Duration) api.Check {
	off := (said - went).Round(10 * time.Millisecond)
	switch {
	case off.Abs() < jumped:
		return fine(areaClock, "nobody has set the clock of the director's host since it started")
	case off < 0:
		return warning(areaClock, "let the host follow a time server; nothing fires twice, and no lease ends by it", "the clock of the director's host was set back by %s since it started", -off)
	}
	return warning(areaClock, "let the host follow a time server, unless it slept: nothing fires twice, and no lease ends by it", "the clock of the director's host is %s ahead of the time that went by since it started: it was set, or the machine slept", off)
}
