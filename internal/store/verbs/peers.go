package verbs

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox/internal/store"
)

type beat struct {
	beat       store.Beat
	quarantine *quarantine
	got        store.Peers
}

// Beat renews the lease of a director and returns who else is alive.
func (s *Store) Beat(ctx context.Context, b store.Beat) (store.Peers, error) {
	v := &beat{beat: b, quarantine: &s.quarantine}
	if err := s.do(ctx, v, 0); err != nil {
		return store.Peers{}, err
	}
	return v.got, nil
}

func (v *beat) run(x *workingSet) error {
	var rows store.BeatRows
	var bad []*docRow
	rows.Directors, _ = all(x, v.quarantine, kindDirector, readDirector)
	rows.Heard, bad = all(x, v.quarantine, kindHeard, readHeard)
	for _, agents := range [][]string{v.beat.Take, v.beat.Drop} {
		for _, agent := range agents {
			r := x.doc(kindHolding, agent)
			switch held, err := decodeDoc(r, readHolding); {
			case err != nil:
				v.quarantine.report(r.doc.DocKey, err)
				bad = append(bad, r)
			case held != nil:
				rows.Holdings = append(rows.Holdings, *held)
			}
		}
	}
	if x.missing {
		return errMissing
	}
	c, answer, err := store.StepBeat(rows, v.beat)
	if err != nil {
		return err
	}
	v.got = answer
	x.quarantine(bad)
	x.beaten(&c)
	return nil
}

// beaten stores what a beat changed.
func (x *workingSet) beaten(c *store.BeatChange) {
	for _, id := range c.Gone {
		x.drop(kindDirector, id)
	}
	for _, agent := range c.Free {
		x.drop(kindHolding, agent)
	}
	for _, agent := range c.Forgot {
		x.drop(kindHeard, agent)
	}
	for i := range c.Put {
		x.put(kindDirector, c.Put[i].ID, 0, directorBody(&c.Put[i]), nil)
	}
	for i := range c.Hold {
		x.put(kindHolding, c.Hold[i].Agent, 0, holdingBody(&c.Hold[i]), nil)
	}
	for i := range c.Heard {
		x.put(kindHeard, c.Heard[i].Agent, 0, heardBody(&c.Heard[i]), nil)
	}
}

// Directors lists the directors over the store, dead ones too. If the row of one is damaged, only its ID is
// known.
func (s *Store) Directors(ctx context.Context) ([]store.Director, error) {
	docs, err := s.page(ctx, Page{Kind: kindDirector})
	if err != nil {
		return nil, err
	}
	return readable(&s.quarantine, docs, readDirector, func(id string) store.Director { return store.Director{ID: id} }), nil
}

// Holders returns which director holds each agent.
func (s *Store) Holders(ctx context.Context) (map[string]string, error) {
	docs, err := s.page(ctx, Page{Kind: kindHolding})
	if err != nil {
		return nil, err
	}
	directors, err := s.Directors(ctx)
	if err != nil {
		return nil, err
	}
	return store.HoldersOf(directors, readable(&s.quarantine, docs, readHolding, nil)), nil
}

type tickets struct {
	step       store.TicketStep
	quarantine *quarantine
	got        store.ToolLine
}

// Tickets takes one step of a shared tool queue.
func (s *Store) Tickets(ctx context.Context, step store.TicketStep) (store.ToolLine, error) {
	v := &tickets{step: step, quarantine: &s.quarantine}
	if err := s.do(ctx, v, 0); err != nil {
		return store.ToolLine{}, err
	}
	return v.got, nil
}

const countTickets = "tickets"

// usually it is not the caller's turn yet
func (v *tickets) likelyReadOnly() bool {
	s := &v.step
	return len(s.Enter)+len(s.Leave)+len(s.EndSessions)+len(s.Keep)+len(s.Idle)+len(s.Unused)+len(s.Gates) == 0
}

func (v *tickets) run(x *workingSet) error {
	kind := kindTickets + v.step.Queue
	rows, bad := all(x, v.quarantine, kind, readTicket)
	last, err := decodeDoc(x.doc(kindCount, countTickets), readGiven)
	if err != nil {
		return err
	}
	r := x.doc(kindToolLimits, v.step.Queue)
	limits, damage := decodeDoc(r, readLimits)
	if x.missing {
		return errMissing
	}
	before := store.ToolLine{Tickets: rows}
	if damage != nil {
		v.quarantine.report(r.doc.DocKey, damage)
		bad = append(bad, r)
	} else if limits != nil {
		before.Limits = *limits
	}
	if last == nil {
		last = &given{}
	}
	after, changed, place, fence := store.StepTickets(before, v.step, last.place, last.fence)
	v.got = after
	x.quarantine(bad)
	if !changed {
		return nil
	}
	if g := (given{place, fence}); g != *last {
		x.put(kindCount, countTickets, 0, givenBody(g), &g)
	}
	x.putTickets(kind, rows, after.Tickets)
	if !slices.Equal(before.Limits, after.Limits) {
		x.putLimits(v.step.Queue, after.Limits)
	}
	return nil
}

func (x *workingSet) putLimits(queue string, list []store.ToolLimit) {
	if len(list) == 0 {
		x.drop(kindToolLimits, queue)
		return
	}
	x.put(kindToolLimits, queue, 0, limitsBody(list), nil)
}

// putTickets stores the difference between the rows of a tool queue before and
// after a step.
func (x *workingSet) putTickets(kind string, before, after []store.Ticket) {
	was := make(map[string]*store.Ticket, len(before))
	for i := range before {
		was[before[i].ID] = &before[i]
	}
	for i := range after {
		t := &after[i]
		if old := was[t.ID]; old == nil || *old != *t {
			x.put(kind, t.ID, t.Place, ticketBody(t), nil)
		}
		delete(was, t.ID)
	}
	for id := range was {
		x.drop(kind, id)
	}
}
