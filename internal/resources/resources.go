// Package resources checks which named resources tasks need, and describes what they wait for.
package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// Needs returns what a task holds, by resource; nil for nothing.
func Needs(units map[string]int) *[]signalbox.Need {
	if len(units) == 0 {
		return nil
	}
	var list []signalbox.Need
	for _, name := range slices.Sorted(maps.Keys(units)) {
		list = append(list, signalbox.Need{Resource: name, N: units[name]})
	}
	return &list
}

// Units is the inverse of Needs.
func Units(needs *[]signalbox.Need) map[string]int {
	if needs == nil {
		return nil
	}
	units := make(map[string]int, len(*needs))
	for _, n := range *needs {
		units[n.Resource] = n.N
	}
	return units
}

// Check refuses needs that can never be satisfied (CodeValidation). Exclusive resources are for callers
// within the director: no name from outside contains a colon.
func Check(resources map[string]signalbox.Resource, units map[string]int) error {
	if len(units) == 0 {
		return nil
	}
	if len(units) > signalbox.MaxNeeds {
		return signalbox.Invalid("needs", "needs names %d resources: %d at most", len(units), signalbox.MaxNeeds)
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		switch n, most := units[name], resources[name].Capacity; {
		case most == 0 && len(resources) == 0:
			return signalbox.Invalid("needs", "needs: there is no resource %q: the director's configuration lists none under resources", signalbox.Preview(name))
		case most == 0:
			known := slices.Sorted(maps.Keys(resources))
			return signalbox.Invalid("needs", "needs: there is no resource %q: the director's configuration lists %s", signalbox.Preview(name), strings.Join(known[:min(len(known), 10)], ", "))
		case n < 1 || n > most:
			return signalbox.Invalid("needs", "needs.%s is %d: want 1 to %d, which is all that there is", name, n, most)
		}
	}
	return nil
}

// Lack is a resource that a task needs and others hold.
type Lack struct {
	Need   signalbox.Need
	Units  int             // total number
	Used   int             // number held by others
	Holder *signalbox.Hold // the one that has held some for longest; nil: none
}

// First returns the first need of which not enough is free; nil if there is none.
func First(resources map[string]signalbox.Resource, needs []signalbox.Need, holds []signalbox.Hold) *Lack {
	for _, n := range needs {
		taken := slices.DeleteFunc(slices.Clone(holds), func(h signalbox.Hold) bool { return h.Resource != n.Resource })
		if _, ok := signalbox.Allot(resources, n, taken); ok {
			continue
		}
		l := &Lack{Need: n, Units: signalbox.Units(resources, n.Resource)}
		for i := range taken {
			l.Used += taken[i].N
		}
		if len(taken) > 0 {
			l.Holder = &taken[0]
		}
		return l
	}
	return nil
}

// Texts describes what is lacking, and why. run is the task that the holder runs, "" if it has ended
// meanwhile; dir is the folder that it works in.
func (l *Lack) Texts(run, dir string) (text, detail string) {
	holder := "another task"
	if l.Holder != nil {
		holder = l.Holder.Agent
	}
	kind, _, _ := strings.Cut(l.Need.Resource, ":")
	switch {
	case kind == "folder":
		return strings.TrimSuffix(fmt.Sprintf("%s works in %s: %s", holder, dir, run), ": "),
			"one run at a time works in a folder; with --workspace worktree agents and slots work side by side"
	case kind == "land":
		return strings.TrimSpace("Another task lands there first: " + run), "one at a time lands on a branch of a repository"
	case l.Units == 0:
		return fmt.Sprintf("No resource %s is configured any more", l.Need.Resource), "the director was started anew without it"
	}
	free := max(0, l.Units-l.Used)
	are := "are"
	if free == 1 {
		are = "is"
	}
	return fmt.Sprintf("It needs %d of %s, and %d of %d %s free", l.Need.N, l.Need.Resource, free, l.Units, are), strings.TrimSpace("the first to hold some is " + holder + " " + run)
}
