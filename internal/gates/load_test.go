package gates_test

import (
	"maps"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gates"
)

// Each waiting task counts once, at the gate that keeps it: a parked task at its own gate, even if another
// gate keeps the rest of its queue.
func TestLoads(t *testing.T) {
	at := func(queue string, kind signalbox.GateKind, account string) signalbox.Task {
		return signalbox.Task{Queue: queue, State: signalbox.Parked, Parking: &signalbox.Parking{Gate: signalbox.Gate{Kind: kind, Name: account}}}
	}
	account := func(name string) signalbox.GateRef { return signalbox.GateRef{Kind: signalbox.GateAccount, Name: name} }
	parked := []signalbox.Task{
		at("agent:a", signalbox.GateAccount, "one"), at("agent:a", signalbox.GateTime, ""), at("work", signalbox.GateAccount, "two"),
	}
	queues := map[string]int{"agent:a": 5, "work": 4, "agent:b": 7, "agent:c": 2}
	got := gates.Loads(parked, queues, func(queue string) signalbox.GateRef {
		if queue == "agent:b" {
			return signalbox.GateRef{}
		}
		return account("one")
	})
	want := map[signalbox.GateRef]gates.Load{account("one"): {Parked: 1, Waiting: 3 + 3 + 2}, account("two"): {Parked: 1}, {Kind: signalbox.GateTime}: {Parked: 1}}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if queues["work"] != 4 {
		t.Error("the caller's counts were changed")
	}
}
