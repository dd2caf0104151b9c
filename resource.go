package signalbox

import (
	"slices"
	"strings"
)

// Resource is something that a run holds exclusively or in part, such as a staging database or a
// port.
type Resource struct {
	Capacity int      // units; if there are Values, their number
	Values   []string // each is assigned to one run at a time
	Env      string   // environment variable that holds them for a run; "": ResourceEnv of the name
}

// Need is how much a run needs of a resource. A task gets everything it needs in the commit of its
// claim, or it is not claimed.
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
	Values   []string // N values, if the resource has any
}

// Bounds on resources.
const (
	MaxNeeds            = 16 // per task
	MaxResources        = 1000
	MaxResourceCapacity = 10000
	// MaxPassed is how many tasks of a queue may overtake those that wait for a resource.
	MaxPassed = 100
)

// ResourceEnv returns the environment variable that tells a run what it holds of a resource.
func ResourceEnv(name string) string {
	return "SIGNALBOX_RESOURCE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

// Exclusive returns the name of an implicit resource of capacity 1, which no configuration lists.
// kind is "folder" or "land"; name identifies a folder or a repository.
func Exclusive(kind, name string) string { return kind + ":" + name }

// Units returns the capacity of a resource; 0: the resource is unknown.
func Units(resources map[string]Resource, name string) int {
	if strings.Contains(name, ":") { // Exclusive; no configured name contains a colon
		return 1
	}
	return resources[name].Capacity
}

// Allot returns the units that satisfy a need, given what others hold; ok is false if not enough
// is left.
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

// Workplace is where a run works, as far as its submitter has specified it.
type Workplace string

// The workplaces.
const (
	WorkplaceDefault Workplace = ""       // as its agent is configured
	WorkplaceFolder  Workplace = "folder" // the agent's own folder, one run at a time
	WorkplaceOther   Workplace = "other"  // its own worktree or clone, or the project of the task
)
