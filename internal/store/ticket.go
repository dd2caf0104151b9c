package store

import (
	"cmp"
	"slices"
	"time"
)

// StepTickets takes a step over the tickets of its queue. It returns the tickets after the step, holders by
// Fence, then waiting ones by Place; whether anything must be written; and the newest Place and Fence given,
// whose previous values are place and fence. It does not modify its arguments.
func StepTickets(before ToolLine, s TicketStep, place, fence int64) (after ToolLine, changed bool, newPlace, newFence int64) {
	s.Now, s.Expires = toMS(s.Now), toMS(s.Expires) // stores keep milliseconds
	t := tickets{step: &s, place: place, fence: fence}
	t.readLimits(before.Limits)
	rows := before.Tickets
	for i := range rows {
		if rows[i].Fence > 0 {
			t.holders = append(t.holders, rows[i])
		} else {
			t.line = append(t.line, rows[i])
		}
	}
	slices.SortFunc(t.holders, func(a, b Ticket) int { return cmp.Compare(a.Fence, b.Fence) })
	slices.SortFunc(t.line, func(a, b Ticket) int { return cmp.Compare(a.Place, b.Place) })
	t.expire()
	t.drop(s.Leave, func(x *Ticket) string { return x.ID })
	t.endSessions()
	t.keep()
	t.callsEnd(s.Idle, true)
	t.callsEnd(s.Unused, false)
	t.gates()
	t.handOn()
	for i := range s.Enter {
		t.enter(s.Enter[i])
	}
	return ToolLine{append(t.holders, t.line...), t.writeLimits()}, t.changed, t.place, t.fence
}

// tickets are the tickets of a queue during a step.
type tickets struct {
	step          *TicketStep
	holders, line []Ticket
	place, fence  int64
	changed       bool
	limits
}

// remove removes tickets. Calls that waited for an ended lease are queued again at the back: they were not in
// line for another slot.
func (t *tickets) remove(gone func(*Ticket) bool) {
	var ended []Ticket
	t.holders = slices.DeleteFunc(t.holders, func(x Ticket) bool {
		if !gone(&x) {
			return false
		}
		t.changed = true
		if x.Leased {
			ended = append(ended, x)
		}
		return true
	})
	before := len(t.line)
	t.line = slices.DeleteFunc(t.line, func(x Ticket) bool { return gone(&x) })
	t.changed = t.changed || len(t.line) < before
	for i := range ended {
		t.toTheBack(&ended[i])
	}
}

func (t *tickets) toTheBack(lease *Ticket) {
	var stay, moved []Ticket
	for _, x := range t.line {
		if !x.Leased || x.Session != lease.Session || x.Key != lease.Key {
			stay = append(stay, x)
			continue
		}
		t.place++
		x.Place = t.place
		moved = append(moved, x)
	}
	t.line = append(stay, moved...)
}

func (t *tickets) expire() {
	now, over := t.step.Now, t.step.Over
	if over == nil {
		over = func(x Ticket) bool { return !now.Before(x.Expires) }
	}
	t.remove(func(x *Ticket) bool {
		return over(*x) || !x.Idle.IsZero() && !x.Ends.IsZero() && !now.Before(x.Ends) && !t.awaited(x)
	})
}

// drop removes the tickets of which a value, chosen by of, is in a list.
func (t *tickets) drop(words []string, of func(*Ticket) string) {
	if len(words) > 0 {
		t.remove(func(x *Ticket) bool { return slices.Contains(words, of(x)) })
	}
}

// endSessions ends leases: at once if no call is in progress, else together with the call.
func (t *tickets) endSessions() {
	if len(t.step.EndSessions) == 0 {
		return
	}
	ends := func(x *Ticket) bool { return x.Leased && slices.Contains(t.step.EndSessions, x.Session) }
	for i := range t.holders {
		if x := &t.holders[i]; ends(x) && x.Idle.IsZero() && !x.Over {
			x.Over, t.changed = true, true
		}
	}
	t.remove(func(x *Ticket) bool { return ends(x) && !x.Idle.IsZero() })
}

func (t *tickets) keep() {
	for _, id := range t.step.Keep {
		// Also if it is earlier, after the clock was set back: others see by the change that the ticket is
		// kept.
		if x := t.find(id); x != nil && !t.step.Expires.Equal(x.Expires) {
			x.Expires, t.changed = t.step.Expires, true
		}
	}
}

func (t *tickets) find(id string) *Ticket {
	for _, of := range [][]Ticket{t.holders, t.line} {
		for i := range of {
			if of[i].ID == id {
				return &of[i]
			}
		}
	}
	return nil
}

// callsEnd makes leased tickets idle, and removes those whose lease is over and those without a lease.
func (t *tickets) callsEnd(ids []string, used bool) {
	now := t.step.Now
	var gone []string
	for _, id := range ids {
		x := t.find(id)
		if x == nil || !x.Idle.IsZero() {
			continue
		}
		ends := now.Add(t.step.LeaseIdle)
		if !x.Ends.IsZero() && x.Ends.Before(ends) {
			ends = x.Ends
		}
		if x.Fence == 0 || !x.Leased || x.Over || !now.Before(ends) {
			gone = append(gone, id)
			continue
		}
		x.Idle, x.Ends, x.Used = now, ends, x.Used || used
		t.changed = true
	}
	t.drop(gone, func(x *Ticket) string { return x.ID })
}

// handOn gives slots to waiting tickets, in order: the slot of an idle lease to the next call of its session,
// free slots to the others. Each takes a token of its key. A step without a time only reads.
func (t *tickets) handOn() {
	if t.step.Now.IsZero() {
		t.count()
		return
	}
	t.remove(func(x *Ticket) bool { return !x.Idle.IsZero() && !x.Used && !t.awaited(x) })
	t.count()
	waiting := t.line
	t.line = nil
	for _, x := range waiting {
		if at := t.leaseOf(&x); t.hasSlot(&x, at) && t.mayStart(x.Key) {
			t.waiting[x.Key]--
			t.grant(x, at)
		} else {
			t.line = append(t.line, x)
		}
	}
}

// hasSlot reports whether there is a slot for a call. at is the ticket that holds a slot for its session, nil
// if there is none.
func (t *tickets) hasSlot(x, at *Ticket) bool {
	if at == nil {
		return t.running[x.Key] < t.step.Concurrent
	}
	return !at.Idle.IsZero()
}

// leaseOf returns the ticket that holds the slot of a call's session.
func (t *tickets) leaseOf(x *Ticket) *Ticket {
	if !x.Leased {
		return nil
	}
	for i := range t.holders {
		if h := &t.holders[i]; h.Leased && h.Session == x.Session && h.Key == x.Key {
			return h
		}
	}
	return nil
}

// grant gives a call a free slot, or its session's slot in place of the idle ticket.
func (t *tickets) grant(x Ticket, at *Ticket) {
	t.changed = true
	t.fence++
	x.Fence, x.Granted = t.fence, t.step.Now
	if at != nil {
		x.Granted, x.Used = at.Granted, at.Used
		gone := at.ID
		t.holders = slices.DeleteFunc(t.holders, func(h Ticket) bool { return h.ID == gone })
		t.running[x.Key]--
	}
	t.running[x.Key]++
	if x.Leased && t.step.LeaseHold > 0 {
		x.Ends = x.Granted.Add(t.step.LeaseHold)
	}
	t.holders = append(t.holders, x)
}

// enter adds a call, unless there is neither a free slot nor a place in line.
func (t *tickets) enter(x Ticket) {
	if t.find(x.ID) != nil || t.tooMany(x.Key) {
		return
	}
	x.Place, x.Since, x.Expires = t.place+1, t.step.Now, t.step.Expires
	x.Fence, x.Granted, x.Idle, x.Ends, x.Used, x.Over = 0, time.Time{}, time.Time{}, time.Time{}, false, false
	at := t.leaseOf(&x)
	switch {
	case t.hasSlot(&x, at) && t.mayStart(x.Key):
		t.place++
		t.grant(x, at)
	case t.step.MaxWaiters == 0 || t.waiting[x.Key] < t.step.MaxWaiters:
		t.place++
		t.waiting[x.Key]++
		t.line = append(t.line, x)
		t.changed = true
	}
}

// Ticket is a call's place in a tool queue that several processes share: it waits while Fence is 0, then it
// holds one slot until that is given back or expires. Slots are rows, not counters: the slots of a process
// that dies become free at their Expires.
type Ticket struct {
	Queue string
	ID    string // unique in the store; chosen by its creator
	// Owner is the process that keeps it alive: a director's ID.
	Owner                           string
	Session, Agent, Tool, Execution string
	// Key names whose limits apply: "" if all calls of the queue share them.
	Key     string
	Place   int64     // in line; the lowest is first
	Fence   int64     // of the slot, 0 while it waits; only grows
	Since   time.Time // when it entered
	Granted time.Time // when it got its slot: for a lease, that of its first call; zero while it waits
	Expires time.Time // unless it is extended by Keep
	// Leased: its session keeps the slot from call to call. When the call has ended the ticket stays as idle,
	// and the session's next call, in any process, takes the slot over with its own ticket.
	Leased bool
	Idle   time.Time // since when no call is in progress; zero while one is
	Ends   time.Time // when the lease ends even if it is kept, unless a call is in progress; zero: never
	Used   bool      // a call of the lease has used its slot
	Over   bool      // the lease ends with the call in progress
}

// TicketStep is one atomic step of a shared tool queue. In this order:
//
//   - expired tickets (Over), and idle ones whose lease is over, are removed;
//   - the tickets of Leave are removed, and the leases of the sessions of EndSessions end;
//   - the tickets of Keep last until Expires; the calls of Idle and Unused end;
//   - keys are closed and opened (Gates);
//   - slots are given to waiting tickets, first come first served, each with a token (Take), unless their
//     key is closed;
//   - the tickets of Enter are added, one after the other: a ticket that finds neither a free slot nor a
//     place in line (MaxWaiters) is not among the tickets afterwards.
//
// Concurrent, MaxWaiters and Take apply to each key separately.
//
// Naming a ticket that does not exist, or in Enter one that exists, has no effect: a step with an unknown
// outcome can be repeated.
type TicketStep struct {
	Queue      string
	Concurrent int // slots, by the configuration of the caller
	MaxWaiters int // 0: any number
	MaxKeys    int // with tickets or limits; 0: any number
	// LeaseIdle and LeaseHold are the bounds of the queue's session leases
	// (toolqueue.Lease); 0: none.
	LeaseIdle, LeaseHold time.Duration
	// Take takes a token at now from the bucket of a rate that is full at full, both since the
	// Unix epoch, and returns when it is full then; toolqueue.Rate has it. nil: there is no rate.
	Take        func(full, now time.Duration) (after time.Duration, ok bool)
	Gates       []ToolGate
	Enter       []Ticket // Place, Fence, Granted, Since and Expires are set here
	Leave       []string
	EndSessions []string
	Keep        []string
	Idle        []string // leased tickets whose call ended
	Unused      []string // likewise for calls that never began: they leave no new lease behind
	// Over reports whether a stored ticket has expired. It has no side effects, and may be called more than
	// once. nil: a ticket has expired if Now is not before its Expires, which is right if Now never jumps.
	Over    func(Ticket) bool
	Now     time.Time
	Expires time.Time // of the tickets of Enter and Keep
}
