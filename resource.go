package signalbox

import (
	"slices"
	"strings"
)

// Resource is something that runs hold while they work, such as a staging database or a port.
type Resource struct {
	Capacity int      // units; where there are Values, that is how many there are
	Values   []string // handed out, each to one run at a time
	Env      string   // variable that a run finds them in; "": ResourceEnv of the name
}

// Need is how much a run needs of a resource. A task gets all that it needs in the commit of its
// claim, or is not claimed.
type Need struct {
	Resource string
	N        int // from 1
}

// Hold is what an execution holds of a resource, until its slot is given back.
type Hold struct {
	Resource string
	Agent    string
	Slot     int
	Fence    int64
	N        int
	Values   []string // N of them, where the resource has any
}

// Bounds on resources.
const (
	MaxNeeds            = 16 // of a task
	MaxResources        = 1000
	MaxResourceCapacity = 10000
	// MaxPassed is how many tasks of a queue may overtake those that wait for a resource.
	MaxPassed = 100
)

// ResourceEnv is the variable in which a run finds what it holds of a resource.
func ResourceEnv(name string) string {
	return "SIGNALBOX_RESOURCE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

// Exclusive names a resource of capacity 1 that no configuration lists: kind is "folder" or
// "land", name is of the agent's host or repository.
func Exclusive(kind, name string) string { return kind + ":" + name }

// Units returns how many units there are of a resource; 0: it is not known.
func Units(resources map[string]Resource, name string) int {
	if strings.Contains(name, ":") { // Exclusive; no configured name has one
		return 1
	}
	return resources[name].Capacity
}

// Allot returns what a need gets of a resource of which others hold something; ok is false if
// that is not enough.
func Allot(resources map[string]Resource, need Need, taken []Hold) (h Hold, ok bool) {
	free, values := Units(resources, need.Resource), resources[need.Resource].Values
	for i := range taken {
		free -= taken[i].N
	}
	if need.N < 1 || free < need.N {
		return h, false
	}
	h = Hold{Resource: need.Resource, N: need.N}
	for _, v := range values {
		if len(h.Values) < need.N && !slices.ContainsFunc(taken, func(t Hold) bool { return slices.Contains(t.Values, v) }) {
			h.Values = append(h.Values, v)
		}
	}
	return h, len(values) == 0 || len(h.Values) == need.N
}

// Workplace is where a run works, as far as its submitter has said.
type Workplace string

// The places of runs.
const (
	WorkplaceDefault Workplace = ""       // as its agent is configured
	WorkplaceFolder  Workplace = "folder" // the agent's own folder, one run at a time
	WorkplaceOther   Workplace = "other"  // a worktree or clone of its own, or the project of the task
)
