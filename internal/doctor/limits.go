package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/confine"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Limits reports how the programs of command tools are limited on this machine, and which limits of tools
// cannot be enforced.
func Limits(report confine.Report, tools []toolconf.CommandTool) CheckFunc {
	return func(_ context.Context, admin bool) []api.Check {
		return append(limits(report, tools, admin), sandboxes(report, tools, admin)...)
	}
}

func limits(report confine.Report, tools []toolconf.CommandTool, admin bool) []api.Check {
	text := "programs are bounded by " + report.Method
	if admin && report.Detail != "" {
		text += " (" + report.Detail + ")"
	}
	var kept []string
	var out []api.Check
	for _, l := range report.Limits {
		if l.By != "" {
			kept = append(kept, l.Name+" by "+l.By+because(l.Note))
			continue
		}
		if users := using(tools, l.Name); len(users) > 0 {
			out = append(out, api.Check{
				Area: areaLimits, State: "warn", Text: fmt.Sprintf("%s cannot be bounded here%s, and these tools ask for it: %s", l.Name, because(l.Note), strings.Join(users, ", ")),
				Cure: cureOf(report),
			})
		}
	}
	if len(kept) > 0 {
		text += ": " + strings.Join(kept, ", ")
	}
	return append([]api.Check{hold(report, text)}, out...)
}

// hold reports how reliably a program is limited, whichever limits its tool asks for.
func hold(report confine.Report, text string) api.Check {
	c := api.Check{Area: areaLimits, State: "ok"}
	words := []string{text, "none can gain privileges"}
	gaps := gapsOf(report)
	if len(gaps) > 0 {
		c.State, c.Cure = "warn", cureOf(report)
	}
	if !report.NoNewPrivs {
		c.State, c.Cure = "warn", "use a Linux of 3.5 or later"
		words[1] = "they can gain privileges, by a setuid program for instance"
	}
	c.Text = strings.Join(append(words, gaps...), "; ")
	return c
}

// gapsOf lists the limits that need control groups, if there are none.
func gapsOf(report confine.Report) (gaps []string) {
	if !report.Tracked {
		gaps = append(gaps, "where the director is killed, the next one does not find what a program left that shed its session, parents, environment and outputs")
	}
	if slices.ContainsFunc(report.Limits, func(l confine.LimitReport) bool { return l.Name == "memory" && l.By == "rlimit" }) {
		gaps = append(gaps, "memory is bounded for each process alone, not for all of a run")
	}
	return gaps
}

func cureOf(report confine.Report) string {
	return "to have all of it kept, " + cmp.Or(report.Cure, "run the director where it may make control groups")
}

func because(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}

// using lists the tools that ask for a limit.
func using(tools []toolconf.CommandTool, limit string) []string {
	var out []string
	for _, t := range tools {
		l := t.Limits
		asked := map[string]bool{
			"memory": l.Memory > 0, "cpus": l.CPUs > 0, "cpu_time": l.CPUTime > 0,
			"processes": l.Processes > 0, "file_size": l.FileSize > 0, "open_files": l.OpenFiles > 0,
		}
		if asked[limit] {
			out = append(out, t.Name)
		}
	}
	return out
}

// sandboxes reports which sandboxes exist, and which tools run without.
func sandboxes(report confine.Report, tools []toolconf.CommandTool, admin bool) []api.Check {
	var have, lack []string
	for _, s := range report.Sandbox {
		words := s.Kind
		if admin {
			words += because(s.Note)
		}
		if s.OK {
			if admin && s.Weak != "" {
				words += "; " + s.Weak
			}
			have = append(have, words)
		} else {
			lack = append(lack, words)
		}
	}
	var out []api.Check
	if len(have) > 0 {
		out = append(out, api.Check{Area: areaSandbox, State: "ok", Text: "there is " + strings.Join(have, " and ")})
	} else {
		out = append(out, api.Check{Area: areaSandbox, State: "ok", Text: "there is none, and no tool asks for one: " + strings.Join(lack, ", ")})
	}
	var refused, open, weak []string
	why := "" // of weak
	for _, t := range tools {
		if t.Sandbox.Mode == toolconf.SandboxOff {
			continue
		}
		required := t.Sandbox.Mode == toolconf.SandboxRequired
		taken := slices.IndexFunc(report.Sandbox, func(s confine.SandboxReport) bool {
			return s.OK && (t.Sandbox.Kind == "" || t.Sandbox.Kind == s.Kind) && !(required && s.TooWeak)
		})
		switch {
		case taken >= 0 && report.Sandbox[taken].Weak != "":
			weak, why = append(weak, t.Name), report.Sandbox[taken].Weak
		case taken >= 0:
		case required:
			refused = append(refused, t.Name)
		default:
			open = append(open, t.Name)
		}
	}
	const cure = confine.CureSandbox
	if len(refused)+len(open) > 0 && len(have) == 0 {
		out = nil
	}
	if len(refused) > 0 {
		out = append(out, api.Check{Area: areaSandbox, State: "fail", Cure: cure, Text: "these tools are refused, because they require a sandbox that is not available here: " + strings.Join(refused, ", ")})
	}
	if len(open) > 0 {
		out = append(out, api.Check{Area: areaSandbox, State: "warn", Cure: cure, Text: "these tools run without the sandbox that they ask for: " + strings.Join(open, ", ")})
	}
	if len(weak) > 0 {
		out = append(out, api.Check{Area: areaSandbox, State: "warn", Cure: cure, Text: "these tools run in a weaker sandbox: " + strings.Join(weak, ", ") + ". " + why})
	}
	return out
}
