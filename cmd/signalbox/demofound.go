package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/signalbox-ai/signalbox"
)

// found is what a demo that was killed left.
type found struct {
	before  bool // there was one
	waiting int
	running int // whose agents live: they are taken up where they are
	lost    int // whose agents are gone
	held    int // firings of schedules that are not decided
}

func (f found) tasks() int { return f.waiting + f.running + f.lost }

// look says what is there before anything goes on.
func (d *demo) look(ctx context.Context) (f found, err error) {
	if d.folder.past.PID == 0 {
		return f, nil
	}
	f.before = true
	if pid := d.folder.past.Wedged; pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it was stopped by the demo before
	}
	lives := map[string]bool{}
	for _, c := range d.children {
		_, lives[c.name] = c.left(ctx)
	}
	counts, err := d.s.store.Counts(ctx)
	if err != nil {
		return f, err
	}
	tasks, err := d.s.store.InFlight(ctx)
	if err != nil {
		return f, err
	}
	runs, err := d.s.store.OpenRuns(ctx)
	if err != nil {
		return f, err
	}
	f.waiting, f.held = counts.Pending, len(runs)
	for i := range tasks {
		if t := &tasks[i]; t.State == signalbox.Dispatching || lives[t.Agent] {
			f.running++
		} else {
			f.lost++
		}
	}
	return f, nil
}

func (f found) String() string {
	parts := []string{fmt.Sprintf("%d waiting", f.waiting), fmt.Sprintf("%d running, taken up where they are", f.running)}
	if f.lost > 0 {
		parts = append(parts, fmt.Sprintf("%d whose agent is gone", f.lost))
	}
	if f.held > 0 {
		parts = append(parts, fmt.Sprintf("%d held back by a schedule", f.held))
	}
	return strings.Join(parts, " · ")
}

// welcome says what there is to see, and how.
func (d *demo) welcome(f found) {
	url := d.s.url
	var b strings.Builder
	switch {
	case f.before && d.folder.past.Ended:
		fmt.Fprintf(&b, "The demo before this one kept its data. Found: %s.\n\n", f)
	case f.before:
		fmt.Fprintf(&b, "The demo before this one was killed. Recovered: %s.\n\n", f)
	}
	fmt.Fprintf(&b, "Dashboard   %s\n", url)
	if link, err := d.s.director.LoginLink(url); err == nil {
		fmt.Fprintf(&b, "Log in      %s (once; signalbox login-link makes another)\n", link)
	}
	fmt.Fprintf(&b, "Agents      %s (demo: they cost nothing and touch nothing)\n", strings.Join(demoAgents, ", "))
	b.WriteString("Tools       browse, behind the tool queue browser (2 slots) · search_code, behind github (1 slot)\n")
	fmt.Fprintf(&b, "Data        %s (this host alone%s)\n", d.folder.path, map[bool]string{true: "; it stays", false: "; removed at the end"}[d.o.Keep])
	at := ""
	if here, ok := readDirectorFile(); !ok || here.URL != url {
		at = " --director " + url // another one is found by itself
	}
	fmt.Fprintf(&b, "\nFrom another terminal: %[1]s top%[2]s · %[1]s status%[2]s · %[1]s submit%[2]s --wait \"say hello\"\n", asTyped(os.Args[0], exec.LookPath), at)
	if d.o.Keys != nil {
		b.WriteString("Keys: w wedge an agent · u undo that · s submit a task · q quit\n")
	}
	d.say.text(b.String() + "\n")
}
