// Package page generates docs/benchmarks.md: the measured figures, how they were
// measured, and what they do not show.
package page

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

// Prompt is the payload of every task.
const Prompt = "Read the failing test in the payment service, find out why it fails, and repair it without changing the test."

//go:embed benchmarks.md.tmpl
var text string

// Make returns the page for a file of figures.
func Make(f results.File) ([]byte, error) {
	t, err := template.New("benchmarks.md.tmpl").Option("missingkey=error").Funcs(template.FuncMap{
		"table":   func() string { return tableOf(f, false) },
		"details": func() string { return tableOf(f, true) },
		"versions": func() string {
			var out []string
			for name, v := range f.Machine.Versions {
				out = append(out, name+" "+v)
			}
			slices.Sort(out)
			return strings.Join(out, ", ")
		},
		"days":    func() string { return days(f.Figures) },
		"rounds":  func() string { return rounds(f.Figures) },
		"missed":  func() string { return missed(f.Figures) },
		"reasons": func() string { return reasons(f.Figures) },
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	if len(f.Figures) == 0 {
		return nil, errors.New("there are no figures: measure some first")
	}
	var out bytes.Buffer
	data := struct {
		results.File
		Prompt string
	}{f, Prompt}
	if err := t.Execute(&out, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func tableOf(f results.File, detail bool) string {
	var all []results.Figure
	for _, one := range f.Figures {
		if one.Detail == detail {
			all = append(all, one)
		}
	}
	return strings.TrimSuffix(Table(all), "\n")
}

// days returns the first and the last day of the measurements.
func days(all []results.Figure) string {
	var d []string
	for _, f := range all {
		d = append(d, f.Measured)
	}
	slices.Sort(d)
	if d = slices.Compact(d); len(d) == 1 {
		return d[0]
	}
	return d[0] + " to " + d[len(d)-1]
}

// rounds returns the minimum and maximum number of rounds of the figures.
func rounds(all []results.Figure) string {
	least, most := len(all[0].Ours.Values), 0
	for _, f := range all {
		least, most = min(least, len(f.Ours.Values)), max(most, len(f.Ours.Values))
	}
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d (%d for some)", most, least)
}

// missed lists the missed targets.
func missed(all []results.Figure) string {
	var s strings.Builder
	for _, f := range all {
		target, met := f.Verdict()
		if target == "" || met {
			continue
		}
		other := ""
		for _, p := range f.Peers {
			if p.Name == f.Target.Of {
				other = fmt.Sprintf(", %s compared with %s", times(f.Ratio(p)), p.Name)
				if f.Delta {
					other = fmt.Sprintf(", %s more than %s", results.Amount(f.Difference(p), f.Unit), p.Name)
				}
			}
		}
		fmt.Fprintf(&s, "- **%s** (`%s`): %s%s; target %s%s.\n", f.Title, f.ID, results.Amount(f.Ours.Median(), f.Unit), other, target, roundsMet(f))
	}
	if s.Len() == 0 {
		return "Every target is met."
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// reasons lists the effects of the design by which figures of this run miss their
// target or are behind a peer: a line for each reason, with its figures.
func reasons(all []results.Figure) string {
	of := map[string][]string{}
	for _, f := range all {
		if target, met := f.Verdict(); target != "" && !met && remarks[f.ID] != "" {
			of[remarks[f.ID]] = append(of[remarks[f.ID]], "`"+f.ID+"`")
			continue
		}
		for _, p := range f.Peers {
			why := behind[f.ID+" "+p.Name]
			if name := "`" + f.ID + "`"; why != "" && !f.Delta && f.Ratio(p) < slower && !slices.Contains(of[why], name) {
				of[why] = append(of[why], name)
			}
		}
	}
	var s strings.Builder
	for _, why := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&s, "- %s: %s%s.\n", strings.Join(of[why], ", "), strings.ToUpper(why[:1]), why[1:])
	}
	if s.Len() == 0 {
		return "None."
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// slower is the ratio below which ours is behind; anything else is noise.
const slower = 0.9
