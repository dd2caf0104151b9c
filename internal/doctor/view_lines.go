package doctor

import (
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// checkWaiting: what waits is pending, in one line, once (7), in order (8), and
// stands in the claim index where nothing holds it back (9).
func (v *view) checkWaiting() {
	seen := map[string]string{}
	for _, queue := range slices.Sorted(maps.Keys(v.shot.Heads)) {
		var last store.Cursor
		for i, t := range v.shot.Heads[queue] {
			at := store.CursorOf(&t)
			if i > 0 && !last.Before(at) {
				v.wrong("task %s stands in queue %s before its turn", t.ID, queue)
			}
			last = at
			if other, twice := seen[t.ID]; twice {
				v.wrong("task %s waits in queue %s and in queue %s", t.ID, other, queue)
			}
			seen[t.ID] = queue
			v.checkWaiter(queue, &t)
		}
	}
}

func (v *view) checkWaiter(queue string, t *signalbox.Task) {
	switch {
	case t.State != signalbox.Pending:
		v.wrong("task %s waits in queue %s and is %s", t.ID, queue, t.State)
	case t.Queue != queue:
		v.wrong("task %s waits in queue %s, its row says %s", t.ID, queue, t.Queue)
	case !t.Ready && t.SessionID == "" && t.NotBefore.IsZero():
		v.wrong("task %s waits for nothing and nobody would claim it", t.ID)
	}
	if _, runs := v.tasks[t.ID]; runs {
		v.wrong("task %s waits in queue %s and runs", t.ID, queue)
	}
	v.checkClaims(t)
}

// checkCounts: the counts of the store are those of its rows.
func (v *view) checkCounts() {
	c := &v.shot.Counts
	sum := func(counts map[string]int) (n int) {
		for _, k := range counts {
			n += k
		}
		return n
	}
	if inQueues, underLimits := sum(c.Queues), sum(c.Limits); c.Pending != inQueues || c.Pending != underLimits {
		v.wrong("%d tasks wait; by queue they are %d, by limit %d", c.Pending, inQueues, underLimits)
	}
	for queue, n := range c.Queues {
		if have := len(v.shot.Heads[queue]); have != min(n, headsRead) {
			v.wrong("%d tasks wait in queue %s, and it lists %d of its first %d", n, queue, have, headsRead)
		}
	}
	states := map[signalbox.State]int{}
	for _, t := range v.shot.InFlight {
		states[t.State]++
	}
	for _, s := range []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling} {
		if c.InFlight[s] != states[s] {
			v.wrong("%d tasks are %s, and %d are counted", states[s], s, c.InFlight[s])
		}
	}
}

// checkTurns: of a session one turn runs at a time, and none could start beside
// it.
func (v *view) checkTurns() {
	running := map[string]string{}
	for _, t := range v.shot.InFlight {
		if t.SessionID == "" {
			continue
		}
		if other, two := running[t.SessionID]; two {
			v.wrong("tasks %s and %s of session %s run side by side", other, t.ID, t.SessionID)
		}
		running[t.SessionID] = t.ID
	}
	for _, heads := range v.shot.Heads {
		for _, t := range heads {
			if other, runs := running[t.SessionID]; runs && t.Ready && t.SessionID != "" {
				v.wrong("task %s of session %s could be claimed while task %s of it runs", t.ID, t.SessionID, other)
			}
		}
	}
}

// checkEnded: what has ended says how and why, and does not run any more (5).
func (v *view) checkEnded() {
	for _, t := range v.ended {
		switch {
		case !t.State.Terminal():
			v.wrong("task %s stands in the history and is %s", t.ID, t.State)
		case t.Reason == "" || t.Message == "" || t.EndedAt.IsZero():
			v.wrong("task %s is %s without a reason, a message or a time", t.ID, t.State)
		}
		if _, runs := v.tasks[t.ID]; runs {
			v.wrong("task %s has ended and runs", t.ID)
		}
	}
}

// checkJournal: its entries have no gaps (13), but where a server lost some.
func (v *view) checkJournal() {
	if v.generation > 1 {
		return
	}
	for i := 1; i < len(v.journal); i++ {
		if before, seq := v.journal[i-1].Seq, v.journal[i].Seq; seq != before+1 {
			v.wrong("journal entry %d follows %d", seq, before)
		}
	}
}

// checkAudit: each row of the audit log follows the one before it, and it is not
// empty where there is what it recorded. That its end was cut off shows against
// a head that was kept elsewhere alone.
func (v *view) checkAudit() {
	if len(v.audit) == 0 && v.recorded > 0 {
		v.wrong("the audit log is empty, and %d tokens and users are there that it recorded: its rows were taken out", v.recorded)
	}
	for i := range len(v.audit) - 1 { // the newest comes first
		if err := signalbox.CheckAudit(&v.audit[i+1], &v.audit[i]); err != nil {
			v.wrong("the audit log: %v", err)
		}
	}
}

// checkSessions: chats of an agent go on with one session at most.
func (v *view) checkSessions() {
	current := map[string]string{}
	for _, s := range v.sessions {
		if other, two := current[s.Agent]; two {
			v.wrong("sessions %s and %s of agent %s are both current", other, s.ID, s.Agent)
		}
		current[s.Agent] = s.ID
	}
}
