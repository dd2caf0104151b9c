package storetest

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// An execution holds what its task needs from its claim until its slot is given back.
func holdRules() []rule {
	return []rule{
		{"one run at a time works in a folder, whichever agent's", holdFolder},
		{"runs that work elsewhere are let through", holdElsewhere},
		{"an agent whose runs work elsewhere holds a folder for a task that asks for it", holdAsked},
		{"a resource is held up to its capacity", holdCapacity},
		{"values are handed out, each to one run", holdValues},
		{"a claim gets all that its task needs, or nothing", holdAll},
		{"a task that waits for a resource is not overtaken by those that need it too", holdOrder},
		{"at most MaxPassed tasks of a queue are passed over", holdPassed},
		{"tasks that need unconfigured resources are never claimed, except exclusive ones", holdUnknown},
		{"a withheld slot still holds", holdWithheld},
		{"of many concurrent claims one gets it", holdAtOnce},
		{"isolated claims hold what they need", holdIsolated},
		{"resources that are no longer held are removed, others stay", holdPruned},
		{"hostile names and values come back byte for byte", holdHostile},
	}
}

func needing(needs ...signalbox.Need) option {
	return func(s *store.Submission) { s.Task.Needs = &needs }
}

func placed(w signalbox.Workplace) option {
	return func(s *store.Submission) { s.Task.Workplace = w }
}

// worksIn is the claim of an agent with two slots whose runs work in a folder.
func (b *fixture) worksIn(agent, folder string) store.ClaimRequest {
	c := b.offerSlots(agent, 2)
	c.Folder, c.Workplace = folder, signalbox.WorkplaceFolder
	return c
}

// having is the claim of an agent with ten slots, with resources.
func (b *fixture) having(agent string) store.ClaimRequest {
	c := b.offerSlots(agent, 10)
	c.Resources = map[string]signalbox.Resource{
		"db": {Capacity: 2}, "port": {Capacity: 3, Values: []string{"3001", "3002", "3003"}}, "none": {},
	}
	return c
}

// short wants a claim to find nothing because others hold what the tasks need.
func (b *fixture) short(c store.ClaimRequest) {
	b.Helper()
	got, err := b.Claim(b.ctx, c)
	b.must(err)
	b.same("claim of "+c.Agent, got, store.Claimed{Short: true})
}

func (b *fixture) gets(c store.ClaimRequest, want string) store.Claimed {
	b.Helper()
	got, err := b.Claim(b.ctx, c)
	b.must(err)
	b.same("claimed by "+c.Agent, got.Task.ID, want)
	b.same("short", got.Short, false)
	return got
}

func (b *fixture) holds() []signalbox.Hold {
	b.Helper()
	list, err := b.Holds(b.ctx)
	b.must(err)
	return list
}

func holdFolder(b *fixture) {
	b.submits(3)
	got := b.gets(b.worksIn("a", "shop"), id(1))
	want := []signalbox.Hold{{Resource: "folder:shop", Agent: "a", Slot: 0, Fence: got.Task.Fence, N: 1}}
	b.same("holds of the claim", got.Holds, want)
	b.same("holds", b.holds(), want)
	b.short(b.worksIn("a", "shop"))
	b.short(b.worksIn("b", "shop"))
	b.gets(b.worksIn("c", "site"), id(2))
	b.same("task", b.task(id(1)).Workplace, signalbox.WorkplaceDefault)
	b.finish(id(1))
	b.gets(b.worksIn("b", "shop"), id(3))
	b.same("nothing waits for it", b.nothing(b.worksIn("a", "shop")), store.Claimed{})
}

// nothing returns the result of a claim that finds no task.
func (b *fixture) nothing(c store.ClaimRequest) store.Claimed {
	b.Helper()
	got, err := b.Claim(b.ctx, c)
	b.must(err)
	return got
}

func holdElsewhere(b *fixture) {
	b.submits(2)
	b.submit(placed(signalbox.WorkplaceOther))
	b.gets(b.worksIn("a", "shop"), id(1))
	b.gets(b.worksIn("b", "shop"), id(3))
	b.short(b.worksIn("b", "shop"))
	c := b.worksIn("b", "shop")
	c.Workplace = signalbox.WorkplaceOther
	b.gets(c, id(2))
}

func holdAsked(b *fixture) {
	b.submits(2, placed(signalbox.WorkplaceFolder))
	c := b.worksIn("a", "shop")
	c.Workplace = signalbox.WorkplaceOther
	b.gets(c, id(1))
	b.short(c)
	c = b.worksIn("b", "")
	b.gets(c, id(2))
}

func holdCapacity(b *fixture) {
	b.submits(4, needing(signalbox.Need{Resource: "db", N: 1}))
	b.gets(b.having("a"), id(1))
	b.gets(b.having("b"), id(2))
	b.short(b.having("a"))
	b.finish(id(1))
	b.gets(b.having("a"), id(3))
	b.short(b.having("b"))
	more := b.having("b")
	more.Resources["db"] = signalbox.Resource{Capacity: 3}
	b.gets(more, id(4))
	b.same("held", len(b.holds()), 3)
}

func holdValues(b *fixture) {
	b.submits(3, needing(signalbox.Need{Resource: "port", N: 1}))
	b.submit(needing(signalbox.Need{Resource: "port", N: 2}))
	for n, want := range []string{"3001", "3002", "3003"} {
		b.same("values", b.gets(b.having("a"), id(n+1)).Holds[0].Values, []string{want})
	}
	b.finish(id(1))
	b.short(b.having("a"))
	b.finish(id(3))
	b.same("values", b.gets(b.having("a"), id(4)).Holds[0].Values, []string{"3001", "3003"})
}

func holdAll(b *fixture) {
	both := needing(signalbox.Need{Resource: "db", N: 2}, signalbox.Need{Resource: "port", N: 1})
	b.submit(needing(signalbox.Need{Resource: "db", N: 1}))
	b.submits(2, both)
	b.submit(needing(signalbox.Need{Resource: "port", N: 3}))
	b.gets(b.having("a"), id(1))
	b.short(b.having("a"))
	b.same("held", len(b.holds()), 1)
	b.finish(id(1))
	got := b.gets(b.having("a"), id(2))
	b.same("holds", got.Holds, []signalbox.Hold{
		{Resource: "db", Agent: "a", Slot: got.Task.Slot, Fence: got.Task.Fence, N: 2},
		{Resource: "port", Agent: "a", Slot: got.Task.Slot, Fence: got.Task.Fence, N: 1, Values: []string{"3001"}},
	})
	b.short(b.having("b"))
}

func holdOrder(b *fixture) {
	b.submits(2, needing(signalbox.Need{Resource: "db", N: 1}))
	b.submit(needing(signalbox.Need{Resource: "db", N: 2}))
	b.submit(needing(signalbox.Need{Resource: "db", N: 1}))
	b.submit(needing(signalbox.Need{Resource: "port", N: 1}))
	b.submit()
	b.gets(b.having("a"), id(1))
	b.gets(b.having("a"), id(2))
	b.finish(id(1))
	b.gets(b.having("a"), id(5))
	b.gets(b.having("a"), id(6))
	b.short(b.having("a"))
	b.finish(id(2))
	b.gets(b.having("a"), id(3))
	b.short(b.having("a"))
}

func holdPassed(b *fixture) {
	need := needing(signalbox.Need{Resource: "db", N: 2})
	b.submits(2+signalbox.MaxPassed, need)
	b.submit()
	b.gets(b.having("a"), id(1))
	b.short(b.having("a"))
	b.happen(id(2), signalbox.Event{Kind: signalbox.EventCancel})
	b.gets(b.having("a"), id(3+signalbox.MaxPassed))
}

func holdUnknown(b *fixture) {
	b.submit(needing(signalbox.Need{Resource: "gpu", N: 1}))
	b.submit(needing(signalbox.Need{Resource: "none", N: 1}))
	land := needing(signalbox.Need{Resource: signalbox.Exclusive("land", "shop:main"), N: 1})
	b.submits(2, land)
	b.gets(b.having("a"), id(3))
	b.short(b.having("a"))
	b.finish(id(3))
	b.gets(b.having("a"), id(4))
}

func holdWithheld(b *fixture) {
	b.submits(2)
	got := b.gets(b.worksIn("a", "shop"), id(1))
	b.accept(id(1))
	b.happen(id(1), signalbox.Event{Kind: signalbox.EventLost, Reason: signalbox.ReasonLost, Withhold: true})
	b.short(b.worksIn("b", "shop"))
	b.same("freed", b.freeSlot("a", 0, got.Task.Fence), true)
	b.same("holds", b.holds(), []signalbox.Hold(nil))
	b.gets(b.worksIn("b", "shop"), id(2))
}

func holdAtOnce(b *fixture) {
	const n = 8
	b.submits(n)
	found := make(chan bool, n)
	for i := range n {
		c := b.worksIn(fmt.Sprint("a", i), "shop")
		go func() {
			got, err := b.Claim(b.ctx, c)
			found <- err == nil && got.Found
			if err != nil {
				b.Error(err)
			}
		}()
	}
	count := 0
	for range n {
		if <-found {
			count++
		}
	}
	b.same("claims", count, 1)
}

func holdIsolated(b *fixture) {
	land := needing(signalbox.Need{Resource: signalbox.Exclusive("land", "shop:main"), N: 1})
	b.submits(2, inQueue("bypass:a"), land)
	c := b.offerSlots("a", 4)
	c.Isolated, c.Queues = true, []string{"bypass:a"}
	got := b.gets(c, id(1))
	b.same("slot", got.Holds[0].Slot, signalbox.FirstIsolatedSlot)
	b.short(c)
	b.finish(id(1))
	b.gets(c, id(2))
}

func holdPruned(b *fixture) {
	b.submits(2)
	b.gets(b.worksIn("a", "shop"), id(1))
	b.gets(b.worksIn("b", "site"), id(2))
	b.finish(id(1))
	_, err := b.Prune(b.ctx, store.Pruning{Ended: b.now.Add(-time.Hour), Limit: 1})
	b.must(err)
	b.same("held", len(b.holds()), 1)
	b.submit()
	b.short(b.worksIn("c", "site"))
	b.gets(b.worksIn("c", "shop"), id(3))
}

func holdHostile(b *fixture) {
	name, value := "land:\x00/\xff%_'\"", "v\x00\xff'"
	needs := []signalbox.Need{{Resource: name, N: 1}, {Resource: "port", N: 1}}
	b.submit(needing(needs...))
	c := b.having("a")
	c.Resources["port"] = signalbox.Resource{Capacity: 1, Values: []string{value}}
	got := b.gets(c, id(1))
	b.same("needs", *b.task(id(1)).Needs, needs)
	b.same("holds", b.holds(), got.Holds)
	b.same("value", got.Holds[1].Values, []string{value})
}
