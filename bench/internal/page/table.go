package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

// Table formats figures, one line per figure and peer.
func Table(all []results.Figure) string {
	var s strings.Builder
	s.WriteString("| figure | ours | peer | ratio | spread: ours; peer | target | met | limit of the machine | `-only` |\n|---|---|---|---|---|---|---|---|---|\n")
	group := ""
	for _, f := range all {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&s, "| **%s** | | | | | | | | `%s` |\n", cmp.Or(titles[group], group), group)
		}
		lines := f.Peers
		if len(lines) == 0 {
			lines = []results.Series{{}}
		}
		for i, p := range lines {
			s.WriteString(line(f, p, i))
		}
	}
	return s.String()
}

// line returns the line of a figure for one peer, the at-th.
func line(f results.Figure, p results.Series, at int) string {
	title, target, met, limit, again := f.Title, "", "", "", "`"+f.Duel+"`"
	if at > 0 {
		title, again = "〃", ""
	}
	if text, ok := f.Verdict(); text != "" && (f.Target.Of == "" && at == 0 || f.Target.Of == p.Name || at == 0 && f.Limit != nil && f.Target.Of == f.Limit.Name) {
		target, met = text, "yes"
		if !ok {
			met = "**no**" + roundsMet(f)
		}
	}
	if f.Limit != nil && at == 0 {
		limit = fmt.Sprintf("%s: %s (ours: %s)", f.Limit.Name, results.Amount(f.Limit.Median(), f.Unit), times(f.Ratio(*f.Limit)))
	}
	beside, ratio, spread := "", "", spreadOf(f.Ours)
	if p.Name != "" {
		beside = p.Name + ": " + results.Amount(p.Median(), f.Unit)
		spread += "; " + spreadOf(p)
		ratio = times(f.Ratio(p))
		if f.Delta {
			ratio = fmt.Sprintf("%+.3f %s", f.Difference(p), f.Unit)
		}
		if f.Ratio(p) < slower && !f.Delta && met == "" {
			met = "behind"
		}
	}
	ours := results.Amount(f.Ours.Median(), f.Unit)
	if f.Ours.Name != "Signalbox" {
		ours = f.Ours.Name + ": " + ours
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", title, ours, beside, ratio, spread, target, met, limit, again)
}

// roundsMet returns in how many rounds a figure met the target that its median
// misses.
func roundsMet(f results.Figure) string {
	met, all := f.RoundsMet()
	if all < 2 {
		return ""
	}
	return fmt.Sprintf(" (met in %d of %d rounds)", met, all)
}

// times formats a ratio; a ratio to zero is empty.
func times(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
		return ""
	}
	return results.Number(v) + "×"
}

// spreadOf returns the minimum and maximum of all rounds.
func spreadOf(s results.Series) string {
	if len(s.Values) == 1 {
		return "–"
	}
	least, most := s.Spread()
	return results.Number(least) + " to " + results.Number(most)
}

// titles are the names of the groups, for people.
var titles = map[string]string{
	"http": "The director over HTTP", "footprint": "Footprint of the program", "idle": "At rest", "sqlite": "SQLite, in process",
	"postgres": "PostgreSQL", "redis": "Redis", "postgres-deep": "PostgreSQL, many wait", "redis-deep": "Redis, many wait",
	"toolqueue": "Tool queues", "gateway": "Through the gateway", "commands": "Command tools", "dashboard": "The pages",
}
