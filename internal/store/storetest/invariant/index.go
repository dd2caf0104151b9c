package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// checkSlots: slots in use are exactly the rows that hold them (design §4.6):
// each task in flight has one row, and each row that is not withheld belongs
// to a task in flight.
func (v *view) checkSlots() {
	type place struct {
		agent string
		slot  int
	}
	at, fences, held := map[place]bool{}, map[int64]bool{}, map[string]int{}
	for _, s := range v.slots {
		if p := (place{s.Agent, s.Slot}); at[p] {
			v.wrong("slot %d of agent %s has two rows", s.Slot, s.Agent)
		} else {
			at[p] = true
		}
		if fences[s.Fence] {
			v.wrong("fence %d holds two slots", s.Fence)
		}
		fences[s.Fence] = true
		t, known := v.tasks[s.TaskID]
		holds := known && t.State.InFlight() && t.Agent == s.Agent && t.Slot == s.Slot && t.Fence == s.Fence
		switch {
		case s.Withheld && holds:
			v.wrong("slot %d of agent %s is withheld, but its task %s is %s", s.Slot, s.Agent, t.ID, t.State)
		case !s.Withheld && !holds:
			v.wrong("slot %d of agent %s is held by task %q with fence %d, which does not run there", s.Slot, s.Agent, s.TaskID, s.Fence)
		case holds:
			held[t.ID]++
		}
	}
	for _, t := range v.flying {
		if held[t.ID] != 1 {
			v.wrong("task %s is %s and holds %d slots", t.ID, t.State, held[t.ID])
		}
	}
}

// checkCapacity: each known agent has at most as many executions as slots (design §4.3). It also reports an
// agent whose number of slots was lowered below what it runs. Promoted tool calls take a slot of the executor
// each without regard to its number of slots: their tool queue bounds them.
func (v *view) checkCapacity() {
	running := map[string]int{}
	for _, s := range v.slots {
		if !s.Withheld && !signalbox.Isolated(s.Slot) {
			running[s.Agent]++
		}
	}
	for _, a := range v.agents {
		if kind, _ := signalbox.ExecutorKind(a.Name); kind == signalbox.ExecutorCalls {
			a.Slots = signalbox.MaxAgentSlots
		}
		if n := running[a.Name]; n > a.Slots {
			v.wrong("agent %s runs %d tasks in %d slots", a.Name, n, a.Slots)
		}
	}
}

// checkReady: the claim index holds the tasks that could start now. The reads do not say whether a task with
// a NotBefore is due, so only what is wrong in both cases is reported.
func (v *view) checkReady() {
	running := map[string]bool{}
	for _, t := range v.flying {
		if t.SessionID != "" {
			running[t.SessionID] = true
		}
	}
	ready := map[string]string{}
	first := map[string]signalbox.Task{} // by session: its first task without a NotBefore
	for _, t := range v.waiting {
		if t.SessionID == "" {
			if !t.Ready && t.NotBefore.IsZero() && t.State != signalbox.Parked {
				v.wrong("task %s waits for nothing and is not ready", t.ID)
			}
			continue
		}
		if _, seen := first[t.SessionID]; !seen && t.NotBefore.IsZero() {
			first[t.SessionID] = t
		}
		if !t.Ready {
			continue
		}
		if other, twice := ready[t.SessionID]; twice {
			v.wrong("tasks %s and %s of session %s are both ready", other, t.ID, t.SessionID)
		}
		ready[t.SessionID] = t.ID
		if f, seen := first[t.SessionID]; seen && f.ID != t.ID {
			v.wrong("task %s of session %s is ready, but %s stands before it", t.ID, t.SessionID, f.ID)
		}
		if running[t.SessionID] {
			v.wrong("task %s of session %s is ready while another one runs", t.ID, t.SessionID)
		}
	}
	for session, t := range first {
		if ready[session] == "" && !running[session] && t.State != signalbox.Parked {
			v.wrong("task %s of session %s could start and nothing of it is ready", t.ID, session)
		}
	}
}

// checkParked: the lists of gates have exactly the tasks that are parked at them, longest parked first.
func (v *view) checkParked() {
	at := map[string]time.Time{}
	for i := range v.parked {
		t := &v.parked[i]
		if _, twice := at[t.ID]; twice || t.State != signalbox.Parked || t.Parking == nil {
			v.wrong("task %s, which is %s, is listed as parked, or twice so", t.ID, t.State)
			continue
		}
		at[t.ID] = t.Parking.At
		if i > 0 && v.parked[i-1].Parking != nil && v.parked[i-1].Parking.At.After(t.Parking.At) {
			v.wrong("parked: %s stands before %s", v.parked[i-1].ID, t.ID)
		}
	}
	n := 0
	for i := range v.waiting {
		t := &v.waiting[i]
		if t.State != signalbox.Parked {
			continue
		}
		n++
		p := t.Parking
		switch since, listed := at[t.ID]; {
		case p == nil || p.Kind == "" || p.Count < 1 || p.Count > signalbox.MaxParks || !t.NotBefore.IsZero() || !t.WaitUntil.IsZero():
			v.wrong("task %s is parked, and waits for a time of its own, or at no gate: %+v", t.ID, p)
		case !listed || !since.Equal(p.At):
			v.wrong("task %s is parked and not listed so", t.ID)
		}
	}
	if n != len(v.parked) {
		v.wrong("%d tasks are listed as parked, and %d are", len(v.parked), n)
	}
}

// checkLandings: the list of open landings has exactly the ended tasks that have one, in the order in which
// they were requested, and no landing wish outlives its task.
func (v *view) checkLandings() {
	listed := map[string]bool{}
	for i := range v.landings {
		t := &v.landings[i]
		if listed[t.ID] || !t.State.Terminal() || !t.Landing.Open() {
			v.wrong("task %s, which is %s, is listed as landing, or twice so", t.ID, t.State)
		}
		listed[t.ID] = true
		if i > 0 && v.landings[i-1].Landing != nil && t.Landing != nil && v.landings[i-1].Landing.At.After(t.Landing.At) {
			v.wrong("landings: %s stands before %s", v.landings[i-1].ID, t.ID)
		}
	}
	for i := range v.ended {
		switch t := &v.ended[i]; {
		case t.Landing.Open() != listed[t.ID]:
			v.wrong("task %s has a landing that is %+v; listed as open: %v", t.ID, t.Landing, listed[t.ID])
		case t.Landing != nil && t.Landing.State == signalbox.LandingWanted:
			v.wrong("task %s is %s, and still only wanted to land", t.ID, t.State)
		}
	}
	for _, list := range [][]signalbox.Task{v.waiting, v.flying} {
		for i := range list {
			if l := list[i].Landing; l != nil && l.State != signalbox.LandingWanted && l.State != signalbox.LandingDropped {
				v.wrong("task %s is %s, and its landing is %s already", list[i].ID, list[i].State, l.State)
			}
		}
	}
}

// checkAccounts: each is listed once, its state is valid, and only an account that is being tried has a
// probe.
func (v *view) checkAccounts() {
	for i := range v.accounts {
		a := &v.accounts[i]
		if i > 0 && v.accounts[i-1].Name >= a.Name {
			v.wrong("account %q stands before %q", v.accounts[i-1].Name, a.Name)
		}
		switch a.State {
		case signalbox.AccountOpen, signalbox.AccountClosed, signalbox.AccountTrying, signalbox.AccountSignedOut:
		default:
			v.wrong("account %q has the unknown state %q", a.Name, a.State)
		}
		if a.State != signalbox.AccountTrying && a.Probe != (signalbox.AccountProbe{}) {
			v.wrong("account %q is %s, and %+v goes first", a.Name, a.State, a.Probe)
		}
	}
}

// checkHolds: an exclusive resource has one holder, no value is held twice, and the task of each holder needs
// it.
func (v *view) checkHolds() {
	holders, values := map[string]int64{}, map[string]int64{}
	for _, h := range v.holds {
		if strings.Contains(h.Resource, ":") {
			if other, ok := holders[h.Resource]; ok {
				v.wrong("%q is held by the claims %d and %d", h.Resource, other, h.Fence)
			}
			holders[h.Resource] = h.Fence
		}
		for _, value := range h.Values {
			key := h.Resource + "=" + value
			if other, ok := values[key]; ok {
				v.wrong("%q is held by the claims %d and %d", key, other, h.Fence)
			}
			values[key] = h.Fence
		}
		if !slices.ContainsFunc(v.slots, func(s signalbox.Slot) bool { return s.Agent == h.Agent && s.Slot == h.Slot && s.Fence == h.Fence }) {
			v.wrong("%q is held by claim %d, whose slot was given back", h.Resource, h.Fence)
		}
	}
}

// anew is the smallest distance of a new generation from the last known number.
const anew = 1_000_000

// checkJournal: Seq has no gaps, except one for each time that the server lost acknowledged data.
func (v *view) checkJournal() {
	losses := v.generation - 1
	for i := 1; i < len(v.sequence); i++ {
		step := v.sequence[i] - v.sequence[i-1]
		if step > anew && losses > 0 {
			losses--
			continue
		}
		if step != 1 {
			v.wrong("journal entry %d follows %d", v.sequence[i], v.sequence[i-1])
		}
	}
	var oldest, newest int64
	if n := len(v.sequence); n > 0 {
		oldest, newest = v.sequence[0], v.sequence[n-1]
	}
	if v.oldest != oldest || v.newest != newest {
		v.wrong("the journal goes from %d to %d, its range says %d to %d", oldest, newest, v.oldest, v.newest)
	}
}
