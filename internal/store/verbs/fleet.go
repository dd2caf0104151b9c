package verbs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

type putAgent struct {
	agent signalbox.Agent
	entry signalbox.Entry
}

// PutAgent stores an agent by name. CreatedAt is kept from the first time.
func (s *Store) PutAgent(ctx context.Context, a signalbox.Agent, e signalbox.Entry) error {
	return s.do(ctx, &putAgent{a, e}, 0)
}

func (v *putAgent) run(x *workingSet) error {
	was, err := decodeDoc(x.doc(kindAgent, v.agent.Name), pack.ReadAgent)
	if err != nil {
		return err
	}
	if x.missing {
		return errMissing
	}
	a := v.agent
	if was != nil {
		a.CreatedAt = was.CreatedAt
		if store.SameAgent(&a, was) {
			return nil
		}
	}
	x.put(kindAgent, a.Name, 0, pack.Agent(&a), nil)
	x.note(v.entry)
	return nil
}

type removeAgent struct {
	name  string
	entry signalbox.Entry
}

// RemoveAgent deletes an agent that holds no slots, together with its holder.
func (s *Store) RemoveAgent(ctx context.Context, name string, e signalbox.Entry) error {
	return s.do(ctx, &removeAgent{name, e}, 0)
}

func (v *removeAgent) run(x *workingSet) error {
	was, u := x.doc(kindAgent, v.name), x.agentSlots(v.name)
	if x.missing {
		return errMissing
	}
	if was == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no agent %q", v.name)
	}
	if n := u.used(); n > 0 {
		return signalbox.Errorf(signalbox.CodeConflict, "agent %q still holds %d slots: release them first", v.name, n)
	}
	for _, kind := range []string{kindAgent, kindHolding, kindHeard} {
		x.drop(kind, v.name)
	}
	x.note(v.entry)
	return nil
}

type setPause struct {
	pause signalbox.Pause
	entry signalbox.Entry
}

// SetPause pauses or changes the pause of a queue.
func (s *Store) SetPause(ctx context.Context, p signalbox.Pause, e signalbox.Entry) error {
	return s.do(ctx, &setPause{p, e}, 0)
}

func (v *setPause) run(x *workingSet) error {
	if x.missing {
		return errMissing
	}
	p := v.pause
	x.put(KindPause, p.Queue, 0, pack.Pause(&p), &p)
	x.note(v.entry)
	return nil
}

type resume struct {
	queue string
	entry signalbox.Entry
	was   bool
}

// Resume ends the pause of a queue. The entry is written if there was one.
func (s *Store) Resume(ctx context.Context, queue string, e signalbox.Entry) (was bool, err error) {
	v := &resume{queue: queue, entry: e}
	if err := s.do(ctx, v, 0); err != nil {
		return false, err
	}
	return v.was, nil
}

func (v *resume) run(x *workingSet) error {
	was := x.doc(KindPause, v.queue)
	if x.missing {
		return errMissing
	}
	if v.was = was != nil; v.was {
		x.drop(KindPause, v.queue)
		x.note(v.entry)
	}
	return nil
}

// paused reports whether a pause of exactly that queue is in force; an expired one is not,
// even if its row still exists.
func (x *workingSet) paused(queue string, now time.Time) bool {
	if x.unpaused() {
		return false
	}
	p, err := decodeDoc(x.doc(KindPause, queue), pack.ReadPause)
	return err == nil && p != nil && (p.UntilMS == 0 || now.UnixMilli() < p.UntilMS)
}

// unpaused reports that there is no pause at all.
func (x *workingSet) unpaused() bool {
	k := x.docs.kind(KindPause)
	return k.whole && len(k.rows) == 0
}

// drained reports whether an agent's own queue is paused, which keeps it from all queues.
func (x *workingSet) drained(agent string, now time.Time) bool {
	return !x.unpaused() && x.paused(signalbox.AgentQueue(agent), now)
}

type note struct{ entry signalbox.Entry }

// Note writes a journal entry without a change.
func (s *Store) Note(ctx context.Context, e signalbox.Entry) error { return s.do(ctx, &note{e}, 0) }

func (v *note) run(x *workingSet) error {
	if x.missing {
		return errMissing
	}
	x.note(v.entry)
	return nil
}

// account returns an account; nil if it is unknown or damaged. missing is set if it is not loaded.
func (x *workingSet) account(name string) *signalbox.Account {
	a, err := decodeDoc(x.doc(kindAccount, name), pack.ReadAccount)
	if err != nil { // an unknown account is not closed
		return nil
	}
	return a
}

// admits reports whether the account of an agent admits a claim, and returns the account as it is after it;
// nil if there is none. Isolated claims always pass.
func (x *workingSet) admits(c *store.ClaimRequest, slot int) (after *signalbox.Account, ok bool) {
	if c.Account == "" || c.Isolated {
		return nil, true
	}
	a := x.account(c.Account)
	if a == nil {
		return nil, true
	}
	probing := false
	if p := a.Probe; p.Fence != 0 {
		probing = x.agentSlots(p.Agent).slot(p.Slot, p.Fence) != nil
	}
	next, ok := a.Admit(signalbox.AccountProbe{Agent: c.Agent, Slot: slot}, probing, c.Now)
	if next.Claims == a.Claims && next.Probe == a.Probe {
		return nil, ok
	}
	return &next, ok
}

func (x *workingSet) putAccount(a *signalbox.Account) {
	x.put(kindAccount, a.Name, 0, pack.Account(a), a)
}

// changeAccount applies an event to an account; it may be nil, if unknown. parked are the tasks parked at it,
// which are unparked if it opens.
func (x *workingSet) changeAccount(a *signalbox.Account, ev signalbox.AccountEvent, parked []*row) store.AccountChange {
	after, message := signalbox.NextAccount(valueOf(a), ev)
	x.putAccount(&after)
	if message != "" {
		x.note(signalbox.Entry{At: ev.Now, Kind: signalbox.EventAccount, Account: after.Name, Message: message, By: ev.By()})
	}
	c := store.AccountChange{Account: after.Clone(), Changed: message != ""}
	for _, r := range parked {
		change, err := signalbox.Next(*r.task, signalbox.Event{Kind: signalbox.EventUnpark, Now: ev.Now, Message: after.String()})
		if err != nil {
			continue // it is damaged
		}
		t := change.Task
		t.Rev, t.Ready = x.nextRev(r.task), false
		x.change(r, &t)
		x.settle(r, ev.Now)
		x.note(change.Entry)
		c.Unparked = append(c.Unparked, *r.task)
	}
	return c
}

// parkedAt returns the tasks that are parked at an account, the longest parked ones last,
// with what an unpark of each needs; missing is set if something is not loaded.
func (x *workingSet) parkedAt(account string) (rows []*row) {
	docs := slices.DeleteFunc(x.page(kindParked), func(d *docRow) bool {
		return !strings.HasPrefix(d.doc.ID, parkedPrefix(signalbox.GateAccount, account))
	})
	slices.SortStableFunc(docs, func(a, b *docRow) int { return cmp.Compare(a.doc.Sort, b.doc.Sort) })
	slices.Reverse(docs) // each is moved to the head of its queue
	for _, d := range docs {
		r := x.byID(d.doc.ID[strings.LastIndexByte(d.doc.ID, '/')+1:])
		if r == nil || r.task == nil || r.task.State != signalbox.Parked {
			continue
		}
		if rows = append(rows, r); r.task.SessionID != "" {
			x.nextTurn(r.task.SessionID)
		}
	}
	return rows
}

type changeAccount struct {
	ev  signalbox.AccountEvent
	got store.AccountChange
}

// ChangeAccount applies an event to an account.
func (s *Store) ChangeAccount(ctx context.Context, ev signalbox.AccountEvent) (store.AccountChange, error) {
	v := &changeAccount{ev: ev}
	if err := s.do(ctx, v, 0); err != nil {
		return store.AccountChange{}, err
	}
	return v.got, nil
}

func (v *changeAccount) run(x *workingSet) error {
	a := x.account(v.ev.Account)
	var parked []*row
	if before := valueOf(a); !x.missing {
		if after, _ := signalbox.NextAccount(before, v.ev); before.Opens(&after) {
			parked = x.parkedAt(v.ev.Account)
		}
	}
	if x.missing {
		return errMissing
	}
	v.got = x.changeAccount(a, v.ev, parked)
	return nil
}

type removeAccount struct {
	seen  signalbox.Account
	entry signalbox.Entry
}

// RemoveAccount deletes an account at which no task is parked.
func (s *Store) RemoveAccount(ctx context.Context, seen signalbox.Account, e signalbox.Entry) error {
	return s.do(ctx, &removeAccount{seen, e}, 0)
}

func (v *removeAccount) run(x *workingSet) error {
	a, parked := x.account(v.seen.Name), x.parkedAt(v.seen.Name)
	switch {
	case x.missing:
		return errMissing
	case a == nil:
		return store.NoAccount(v.seen.Name)
	case len(parked) > 0:
		return store.AccountInUse(v.seen.Name, len(parked))
	case a.State != v.seen.State || !a.Since.Equal(v.seen.Since):
		return store.AccountChanged(a)
	}
	x.drop(kindAccount, v.seen.Name)
	x.note(v.entry)
	return nil
}

// Accounts lists the accounts by name.
func (s *Store) Accounts(ctx context.Context) ([]signalbox.Account, error) {
	docs, err := s.page(ctx, Page{Kind: kindAccount})
	if err != nil {
		return nil, err
	}
	return readable(&s.quarantine, docs, pack.ReadAccount, func(id string) signalbox.Account {
		return signalbox.Account{Name: id, State: signalbox.AccountOpen}
	}), nil
}

// Parked lists the tasks that are parked at a gate.
func (s *Store) Parked(ctx context.Context, kind signalbox.GateKind, name string) ([]signalbox.Task, error) {
	docs, err := s.page(ctx, Page{Kind: kindParked, BySort: true})
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range docs {
		at := strings.LastIndexByte(docs[i].ID, '/')
		if kind == "" || docs[i].ID[:at+1] == parkedPrefix(kind, name) {
			ids = append(ids, docs[i].ID[at+1:])
		}
	}
	tasks, err := s.Tasks(ctx, ids)
	return slices.DeleteFunc(tasks, func(t signalbox.Task) bool { // a task may have changed since
		return t.State != signalbox.Parked || (kind != "" && (t.Parking.Kind != kind || t.Parking.Name != name))
	}), err
}
