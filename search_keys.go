package signalbox

import "slices"

// QueryKey is a key of the query language, for help and completion.
type QueryKey struct {
	Name     string
	Text     string   // what its value says about a task
	Values   []string // all valid values, if there are few
	Examples []string // example values, if there are many
}

// queryTable lists the keys in canonical order; the last three are times.
var queryTable = []QueryKey{
	{Name: "id", Text: "beginning or end of its id"},
	{Name: "state", Text: "a state, or waiting, running, ended for several", Values: append(words(States()), "waiting", "running", "ended")},
	{Name: "reason", Text: "why it ended", Values: words(Reasons())},
	{Name: "cause", Text: "fingerprint of the line that says why it failed"},
	{Name: "agent", Text: "that runs it, ran it, or is the only one that may take it"},
	{Name: "queue", Text: "the queue in which it waits or waited", Examples: []string{QueueWork}},
	{Name: "mode", Text: "how it was submitted", Values: []string{"queue", string(ModeChat), string(ModeBypass), string(ModeTool), string(ModeLand)}},
	{Name: "tool", Text: "that it calls"},
	{Name: "source", Text: "how it was submitted", Values: words(Sources())},
	{Name: "job", Text: "of the schedule that submitted it"},
	{Name: "session", Text: "id of its conversation"},
	{Name: "by", Text: "who asked: an e-mail address, the name of a user, agent or service"},
	{Name: "since", Text: "it ended, or was submitted if it has not, at or after", Examples: ages},
	{Name: "until", Text: "it ended, or was submitted if it has not, before", Examples: ages},
	{Name: "older", Text: "it was submitted before", Examples: ages},
}

var ages = []string{"1h", "24h", "7d", "30d"}

// QueryKeys returns the keys of a query in canonical order.
func QueryKeys() []QueryKey { return slices.Clone(queryTable) }

// queryKeys lists the names of the keys in canonical order. "", the key of a text, comes
// before the times.
var queryKeys = func() []string {
	names := make([]string, len(queryTable))
	for i := range queryTable {
		names[i] = queryTable[i].Name
	}
	return slices.Insert(names, len(names)-3, "")
}()

// queryValues are the valid values of the keys that have few.
var queryValues = func() map[string][]string {
	values := map[string][]string{}
	for _, k := range queryTable {
		values[k.Name] = k.Values
	}
	return values
}()

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
