package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

func ticketRules() []rule {
	return []rule{
		{"a free slot is given at once", ticketsGranted},
		{"without a free slot a caller waits, first come first served", ticketsLine},
		{"a caller that finds the queue full leaves nothing behind", ticketsFull},
		{"expired tickets are free, kept ones are not", ticketsExpire},
		{"a repeated step changes nothing", ticketsAgain},
		{"an empty step is a read", ticketsRead},
		{"tool queues are separate, their numbers are shared", ticketsQueues},
		{"positions and fences never restart, and are separate from those of tasks", ticketsNumbers},
		{"a session keeps its slot from call to call", ticketsLease},
		{"concurrent callers never hold more slots than there are", ticketsRace},
		{"no journal entry is written", ticketsSilent},
		{"times are kept to the millisecond", ticketsTimes},
		{"hostile strings come back byte for byte", ticketsHostile},
	}
}

const ticketLease = 15 * time.Second

// step is a step of a tool queue with two slots.
func (b *fixture) step(queue string) store.TicketStep {
	return store.TicketStep{Queue: queue, Concurrent: 2, LeaseIdle: time.Minute, Now: b.now, Expires: b.now.Add(ticketLease)}
}

func calls(queue string, ids ...string) (list []store.Ticket) {
	for _, id := range ids {
		list = append(list, store.Ticket{Queue: queue, ID: id, Owner: "x:1", Agent: "a", Tool: "report", Execution: "queue-1"})
	}
	return list
}

// takes takes a step and returns its tickets.
func (b *fixture) takes(s store.TicketStep) []store.Ticket {
	b.Helper()
	line, err := b.Tickets(b.ctx, s)
	b.must(err)
	return line.Tickets
}

// enter adds calls to a tool queue.
func (b *fixture) enter(queue string, ids ...string) []store.Ticket {
	b.Helper()
	s := b.step(queue)
	s.Enter = calls(queue, ids...)
	return b.takes(s)
}

// give returns calls, which ends them.
func (b *fixture) give(queue string, ids ...string) []store.Ticket {
	b.Helper()
	s := b.step(queue)
	s.Leave = ids
	return b.takes(s)
}

// tickets reads a tool queue.
func (b *fixture) tickets(queue string) []store.Ticket {
	b.Helper()
	return b.takes(store.TicketStep{Queue: queue})
}

// brief shows tickets that hold a slot with their fence, and waiting ones with their place.
func brief(list []store.Ticket) (text []string) {
	for _, t := range list {
		if t.Fence > 0 {
			text = append(text, fmt.Sprintf("%s holds %d", t.ID, t.Fence))
		} else {
			text = append(text, fmt.Sprintf("%s waits %d", t.ID, t.Place))
		}
	}
	return text
}

func ticketsGranted(b *fixture) {
	want := calls("q", "c1")[0]
	want.Place, want.Fence, want.Since, want.Granted, want.Expires = 1, 1, b.now, b.now, b.now.Add(ticketLease)
	b.same("answer", b.enter("q", "c1"), []store.Ticket{want})
	b.same("read", b.tickets("q"), []store.Ticket{want})
}

func ticketsLine(b *fixture) {
	b.enter("q", "c1", "c2", "c3")
	b.pass(time.Second)
	b.same("in line", brief(b.enter("q", "c4")), []string{"c1 holds 1", "c2 holds 2", "c3 waits 3", "c4 waits 4"})
	b.same("one given back", brief(b.give("q", "c2")), []string{"c1 holds 1", "c3 holds 3", "c4 waits 4"})
	b.same("given", b.tickets("q")[1].Granted, b.now)
	b.same("one gave up", brief(b.give("q", "c4", "unknown")), []string{"c1 holds 1", "c3 holds 3"})
	b.same("read", brief(b.tickets("q")), []string{"c1 holds 1", "c3 holds 3"})
	b.same("all gone", b.give("q", "c1", "c3"), []store.Ticket(nil))
	b.same("read", b.tickets("q"), []store.Ticket(nil))
}

func ticketsFull(b *fixture) {
	s := b.step("q")
	s.MaxWaiters, s.Enter = 1, calls("q", "c1", "c2", "c3", "c4")
	want := []string{"c1 holds 1", "c2 holds 2", "c3 waits 3"}
	b.same("answer", brief(b.takes(s)), want)
	b.same("read", brief(b.tickets("q")), want)
	b.give("q", "c3")
	b.same("the next in line", brief(b.enter("q", "c5")), []string{"c1 holds 1", "c2 holds 2", "c5 waits 4"})
}

func ticketsExpire(b *fixture) {
	b.enter("q", "c1", "c2", "c3")
	b.pass(ticketLease - time.Millisecond)
	s := b.step("q")
	s.Keep = []string{"c2", "c3"}
	b.same("at its last moment", brief(b.takes(s)), []string{"c1 holds 1", "c2 holds 2", "c3 waits 3"})
	b.same("kept until", b.tickets("q")[1].Expires, b.now.Add(ticketLease))
	b.pass(time.Millisecond)
	b.same("when it ran out", brief(b.takes(b.step("q"))), []string{"c2 holds 2", "c3 holds 3"})
	s = b.step("q")
	s.Keep = []string{"c1"}
	b.same("kept too late", brief(b.takes(s)), []string{"c2 holds 2", "c3 holds 3"})
}

func ticketsAgain(b *fixture) {
	s := b.step("q")
	s.Enter = calls("q", "c1", "c2", "c3")
	first := b.takes(s)
	b.same("the same step again", b.takes(s), first)
	s = b.step("q")
	s.Leave = []string{"c1"}
	first = b.takes(s)
	b.same("the same step again", b.takes(s), first)
	b.same("numbers", brief(b.enter("q", "c4"))[2], "c4 waits 4")
}

func ticketsRead(b *fixture) {
	b.enter("q", "c1", "c2", "c3")
	b.pass(time.Hour)
	b.same("read", brief(b.tickets("q")), []string{"c1 holds 1", "c2 holds 2", "c3 waits 3"})
	b.same("of an unknown queue", b.tickets("r"), []store.Ticket(nil))
	b.same("stepped", b.takes(b.step("q")), []store.Ticket(nil))
}

func ticketsQueues(b *fixture) {
	b.enter("q", "c1", "c2")
	b.same("another queue", brief(b.enter("r", "d1", "d2", "d3")), []string{"d1 holds 3", "d2 holds 4", "d3 waits 5"})
	b.same("left in the wrong queue", brief(b.give("q", "d1")), []string{"c1 holds 1", "c2 holds 2"})
	b.same("the first queue", brief(b.enter("q", "c3")), []string{"c1 holds 1", "c2 holds 2", "c3 waits 6"})
	b.same("the other queue", brief(b.tickets("r")), []string{"d1 holds 3", "d2 holds 4", "d3 waits 5"})
}

func ticketsNumbers(b *fixture) {
	b.enter("q", "c1")
	t := b.submit()
	b.same("place of a task", t.Place, int64(1))
	b.enter("q", "c2")
	b.same("fence of a task", b.claim("a").Fence, int64(1))
	b.give("q", "c1", "c2")
	b.same("numbers go on", b.enter("q", "c1")[0].Fence, int64(3))
	b.same("place", b.tickets("q")[0].Place, int64(3))
}

// ticketsLease has a session make a call, end it, and call again from another process while others wait.
func ticketsLease(b *fixture) {
	call := func(id, owner string) store.Ticket {
		return store.Ticket{Queue: "q", ID: id, Owner: owner, Session: "s", Tool: "page", Leased: true}
	}
	s := b.step("q")
	s.Concurrent, s.LeaseHold, s.Enter = 1, time.Hour, append([]store.Ticket{call("c1", "x")}, calls("q", "c2")...)
	b.same("first call", brief(b.takes(s)), []string{"c1 holds 1", "c2 waits 2"})
	b.pass(time.Second)
	s.Now, s.Expires, s.Enter, s.Idle = b.now, b.now.Add(ticketLease), nil, []string{"c1"}
	idle := b.takes(s)
	b.same("between the calls", brief(idle), []string{"c1 holds 1", "c2 waits 2"})
	b.same("read", b.tickets("q"), idle)
	b.same("idle", []any{idle[0].Idle, idle[0].Ends, idle[0].Used}, []any{b.now, b.now.Add(time.Minute), true})
	s.Enter, s.Idle = []store.Ticket{call("c3", "y")}, nil
	next := b.takes(s)
	b.same("next call", brief(next), []string{"c3 holds 2", "c2 waits 2"})
	b.same("read", b.tickets("q"), next)
	s.Enter, s.EndSessions = nil, []string{"s"}
	over := b.takes(s)
	b.same("over with the call under way", over[0].Over, true)
	b.same("read", b.tickets("q"), over)
	s.EndSessions, s.Idle = nil, []string{"c3"}
	b.takes(s)
	b.same("the lease is over", brief(b.takes(s)), []string{"c2 holds 3"})
}

func ticketsRace(b *fixture) {
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for turn := range 4 {
				mine := fmt.Sprintf("c%d-%d", n, turn)
				s := b.step("q")
				s.Enter = calls("q", mine)
				for round := 0; ; round++ {
					line, err := b.Tickets(b.ctx, s)
					if err != nil {
						b.Error(err)
						return
					}
					if n := holders(line.Tickets); n > s.Concurrent {
						b.Errorf("%d hold one of %d slots", n, s.Concurrent)
					}
					if round == 3 {
						break
					}
					s.Enter = nil
				}
				s.Leave = []string{mine}
				if _, err := b.Tickets(b.ctx, s); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.same("left", b.tickets("q"), []store.Ticket(nil))
	b.same("places given", b.enter("q", "last")[0].Place, int64(65))
}

func holders(list []store.Ticket) (n int) {
	for i := range list {
		if list[i].Fence > 0 {
			n++
		}
	}
	return n
}

func ticketsSilent(b *fixture) {
	b.enter("q", "c1", "c2", "c3")
	b.give("q", "c1")
	b.same("journal", len(b.journal()), 0)
}

func ticketsTimes(b *fixture) {
	s := b.step("q")
	s.Now, s.Expires, s.Enter = b.now.Add(999*time.Microsecond), b.now.Add(time.Second+time.Microsecond), calls("q", "c1")
	s.Now = s.Now.In(time.FixedZone("away", 3600))
	got := b.takes(s)[0]
	b.same("times", []time.Time{got.Since, got.Granted, got.Expires}, []time.Time{b.now, b.now, b.now.Add(time.Second)})
	b.same("read", b.tickets("q")[0], got)
}

func ticketsHostile(b *fixture) {
	for _, h := range hostile() {
		s := b.step(h)
		s.Enter = []store.Ticket{{Queue: h, ID: h, Owner: h, Session: h, Agent: h, Tool: h, Execution: h, Leased: true}}
		got := b.takes(s)
		want := s.Enter[0]
		want.Place, want.Fence, want.Since, want.Granted, want.Expires = got[0].Place, got[0].Fence, b.now, b.now, b.now.Add(ticketLease)
		b.same("answer", got, []store.Ticket{want})
		b.same("read", b.tickets(h), got)
		s.Enter, s.EndSessions, s.Idle = nil, []string{h}, []string{h}
		b.same("left", b.takes(s), []store.Ticket(nil))
	}
}
