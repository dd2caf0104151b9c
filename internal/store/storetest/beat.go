package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func beatRules() []rule {
	return []rule{
		{"a director is listed with its latest heartbeat", beatListed},
		{"live directors learn of each other", beatOthers},
		{"a free agent is claimed, and stays with its holder", beatTake},
		{"of several directors that claim an agent at once, one gets it", beatRace},
		{"a released agent is free, and no director releases for another", beatDrop},
		{"the agents of a dead director are free", beatDead},
		{"a director whose lease has expired holds nothing", beatLapsed},
		{"a director that leaves is gone, and its agents are free", beatLeave},
		{"a director that was never listed leaves nothing behind", beatLeaveUnknown},
		{"a restarted process starts over, and may claim what it held", beatRestart},
		{"of two processes of one name, the later one stays", beatSuperseded},
		{"another secret key is refused while a director lives", beatKey},
		{"another minor version is refused while a director lives", beatVersion},
		{"a refused heartbeat changes nothing", beatRefused},
		{"directors that are long dead are forgotten", beatForgotten},
		{"a director with another clock is not forgotten", beatByAnotherClock},
		{"a director found silent is gone, unless it has sent a heartbeat since", beatFoundSilent},
		{"the latest report of a pull agent is passed on", beatHeard},
		{"a removed agent is neither held nor reported", beatRemoved},
		{"no journal entry is written", beatSilent},
		{"hostile strings come back byte for byte", beatHostile},
	}
}

const directorLease = 10 * time.Second

// director returns a director that started with the test and whose lease expires in the usual time.
func (b *fixture) director(id string) store.Director {
	return store.Director{
		ID: id, Run: "run of " + id, URL: "http://" + id, Version: "1.2.3", Key: "key", StartedAt: start, Expires: b.now.Add(directorLease),
		Since: start, // the store ignores the value passed in
	}
}

// beats sends a heartbeat that claims agents, and returns the answer.
func (b *fixture) beats(d store.Director, take ...string) store.Peers {
	b.Helper()
	return b.beat(store.Beat{Director: d, Take: take})
}

func (b *fixture) beat(beat store.Beat) store.Peers {
	b.Helper()
	beat.Now = b.now
	answer, err := b.Beat(b.ctx, beat)
	b.must(err)
	return answer
}

func (b *fixture) noBeat(d store.Director) {
	b.Helper()
	_, err := b.Beat(b.ctx, store.Beat{Director: d, Take: []string{"a"}, Drop: []string{"b"}, Heard: []store.Heard{{Agent: "p", At: b.now}}, Now: b.now})
	b.refused(err, signalbox.CodeConflict)
}

func (b *fixture) leaves(d store.Director) store.Peers {
	b.Helper()
	d.Expires = b.now
	return b.beats(d)
}

func (b *fixture) directors() []store.Director {
	b.Helper()
	list, err := b.Directors(b.ctx)
	b.must(err)
	return list
}

func (b *fixture) holders(want map[string]string) {
	b.Helper()
	got, err := b.Holders(b.ctx)
	b.must(err)
	b.same("holders", got, want)
}

func names(list []store.Director) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}

func beatListed(b *fixture) {
	d := b.director("x:1")
	handed := d
	handed.Since = b.now.Add(time.Hour)
	answer := b.beats(handed)
	b.same("directors", b.directors(), []store.Director{d})
	b.same("answer", answer, store.Peers{Directors: []store.Director{d}, Lapsed: true})
	b.pass(time.Second)
	again := b.director("x:1")
	again.URL, again.Version, again.Draining = "http://elsewhere", "1.2.4", true
	answer = b.beats(again)
	b.same("directors", b.directors(), []store.Director{again})
	b.same("answer", answer, store.Peers{Directors: []store.Director{again}})
	b.holders(map[string]string{})
}

func beatOthers(b *fixture) {
	b.beats(b.director("y"))
	b.pass(4 * time.Second)
	b.beats(b.director("z"))
	b.same("living", names(b.beats(b.director("x")).Directors), []string{"x", "y", "z"})
	b.pass(6 * time.Second) // to the end of y's lease
	b.same("living", names(b.beats(b.director("x")).Directors), []string{"x", "z"})
	b.same("listed", names(b.directors()), []string{"x", "y", "z"})
}

func beatTake(b *fixture) {
	x, y := b.director("x"), b.director("y")
	b.same("taken by x", b.beats(x, "b", "a", "b").Taken, []string{"b", "a"})
	b.same("taken by y", b.beats(y, "a", "b", "c").Taken, []string{"c"})
	b.same("taken by x again", b.beats(x, "a", "c").Taken, []string{"a"})
	b.same("asked for nothing", b.beats(x).Taken, []string(nil))
	b.holders(map[string]string{"a": "x", "b": "x", "c": "y"})
}

func beatRace(b *fixture) {
	var took atomic.Int64
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			d := b.director(id(n))
			answer, err := b.Beat(b.ctx, store.Beat{Director: d, Take: []string{"a"}, Now: b.now})
			if err != nil {
				b.Error(err)
			}
			took.Add(int64(len(answer.Taken)))
		})
	}
	all.Wait()
	b.same("directors that took it", took.Load(), int64(1))
	b.same("directors", len(b.directors()), 16)
}

func beatDrop(b *fixture) {
	x, y := b.director("x"), b.director("y")
	b.beats(x, "a", "b", "c")
	b.beat(store.Beat{Director: y, Drop: []string{"a", "unknown"}})
	b.holders(map[string]string{"a": "x", "b": "x", "c": "x"})
	b.same("given up and taken again", b.beat(store.Beat{Director: x, Drop: []string{"a", "b", "b"}, Take: []string{"b"}}).Taken, []string{"b"})
	b.holders(map[string]string{"b": "x", "c": "x"})
	b.same("taken", b.beats(y, "a", "b").Taken, []string{"a"})
	b.holders(map[string]string{"a": "y", "b": "x", "c": "x"})
}

func beatHeard(b *fixture) {
	word := func(agent string, ago time.Duration, said string) store.Heard {
		return store.Heard{Agent: agent, At: b.now.Add(-ago), Status: []byte(said)}
	}
	hears := func(director string, words ...store.Heard) []store.Heard {
		return b.beat(store.Beat{Director: b.director(director), Heard: words}).Heard
	}
	p, q := word("p", time.Second, `{"n":1}`), word("q", 0, "")
	q.Status = nil
	b.same("heard", hears("x", q, p), []store.Heard{p, q})
	b.same("heard, by another", hears("y", word("p", 2*time.Second, "old")), []store.Heard{p, q})
	newer := word("p", 0, "new")
	b.same("heard", hears("y", newer, word("p", time.Second, "old")), []store.Heard{newer, q})
	b.same("what stands stays", hears("y", word("p", 0, "at the same time")), []store.Heard{newer, q})
	b.pass(time.Second)
	p = word("p", 0, "again")
	b.same("heard", hears("x", p), []store.Heard{p, q})
	b.pass(store.ForgetAfter)
	b.same("after a day", hears("x"), []store.Heard{p})
	newer.Status[0] = 'x' // the store must have its own copy
	b.same("of long ago", hears("y", word("z", 2*store.ForgetAfter, "")), []store.Heard{p})
}

func beatRemoved(b *fixture) {
	b.put(anAgent("a"))
	b.put(anAgent("b"))
	b.beat(store.Beat{Director: b.director("x"), Take: []string{"a", "b"}, Heard: []store.Heard{{Agent: "a", At: b.now}, {Agent: "b", At: b.now}}})
	b.must(b.remove("a"))
	b.holders(map[string]string{"b": "x"})
	b.same("heard", b.beats(b.director("x")).Heard, []store.Heard{{Agent: "b", At: b.now}})
	b.put(anAgent("a"))
	b.same("taken by another", b.beats(b.director("y"), "a", "b").Taken, []string{"a"})
}

func beatSilent(b *fixture) {
	b.beat(store.Beat{Director: b.director("x"), Take: []string{"a"}, Heard: []store.Heard{{Agent: "p", At: b.now}}})
	b.leaves(b.director("x"))
	b.same("journal", len(b.journal()), 0)
	b.same("first entry", b.submit().Seq, int64(1))
}

func beatHostile(b *fixture) {
	for _, h := range hostile() {
		d := b.director(h)
		d.Run, d.URL, d.Version = h, h, h
		heard := []store.Heard{{Agent: h, At: b.now, Status: []byte(h)}}
		answer := b.beat(store.Beat{Director: d, Take: []string{h}, Heard: heard})
		b.same("answer", answer, store.Peers{Directors: []store.Director{d}, Taken: []string{h}, Lapsed: true, Heard: heard})
		b.holders(map[string]string{h: h})
		b.put(anAgent(h))
		b.must(b.remove(h))
		b.same("left", len(b.leaves(d).Directors), 0)
		b.holders(map[string]string{})
	}
}

func beatFoundSilent(b *fixture) {
	x, y := b.director("x"), b.director("y")
	x.Expires = b.now.Add(time.Hour) // by a clock that was set back since
	b.beats(x, "a")
	seen := b.directors()
	b.pass(time.Second)
	x.Expires = b.now.Add(time.Hour)
	b.beats(x)
	answer := b.beat(store.Beat{Director: y, Take: []string{"a"}, Silent: seen})
	b.same("living while x beats", names(answer.Directors), []string{"x", "y"})
	b.same("taken while x beats", answer.Taken, []string(nil))
	answer = b.beat(store.Beat{Director: y, Take: []string{"a"}, Silent: b.directors()}) // y itself does not count as silent
	b.same("living", names(answer.Directors), []string{"y"})
	b.same("taken", answer.Taken, []string{"a"})
	b.same("directors", names(b.directors()), []string{"y"})
	b.same("x again", b.beats(x).Lapsed, true)
}

func beatDead(b *fixture) {
	b.beats(b.director("x"), "a", "b")
	b.pass(directorLease - time.Millisecond)
	b.same("taken while it lives", b.beats(b.director("y"), "a").Taken, []string(nil))
	b.pass(time.Millisecond)
	b.holders(map[string]string{"a": "x", "b": "x"})
	b.same("taken when it is dead", b.beats(b.director("y"), "a").Taken, []string{"a"})
	b.holders(map[string]string{"a": "y", "b": "x"})
}

func beatLapsed(b *fixture) {
	b.beats(b.director("x"), "a", "b", "c")
	b.beats(b.director("y"))
	b.pass(directorLease)
	b.beats(b.director("y"), "a")
	answer := b.beats(b.director("x"), "a", "b")
	b.same("lapsed", answer.Lapsed, true)
	b.same("taken anew", answer.Taken, []string{"b"})
	b.holders(map[string]string{"a": "y", "b": "x"}) // c has no holder, although no director took it
	b.same("taken by another", b.beats(b.director("y"), "b", "c").Taken, []string{"c"})
	b.same("it lives since", b.directors()[0].Since, b.now)
	b.same("lapsed", b.beats(b.director("x")).Lapsed, false)
	b.holders(map[string]string{"a": "y", "b": "x", "c": "y"})
}

func beatLeave(b *fixture) {
	x, y := b.director("x"), b.director("y")
	b.beats(x, "a")
	b.beats(y, "b")
	b.same("those that stay", names(b.leaves(x).Directors), []string{"y"})
	b.same("listed", names(b.directors()), []string{"y"})
	b.holders(map[string]string{"b": "y"})
	b.same("taken", b.beats(y, "a").Taken, []string{"a"})
	b.same("back again", b.beats(x, "a").Taken, []string(nil))
	b.leaves(y)
	b.pass(time.Millisecond)
	b.same("held before it came back", b.beats(y).Taken, []string(nil))
	b.same("taken", b.beats(x, "b").Taken, []string{"b"})
}

func beatLeaveUnknown(b *fixture) {
	b.same("answer", b.leaves(b.director("x")), store.Peers{})
	b.same("directors", b.directors(), []store.Director(nil))
	b.beats(b.director("x"), "a")
	other := b.director("x")
	other.Run, other.StartedAt = "another", start.Add(time.Second)
	b.leaves(other)
	b.same("listed", names(b.directors()), []string{"x"})
	b.holders(map[string]string{"a": "x"})
}

func beatRestart(b *fixture) {
	b.beats(b.director("x"), "a", "b")
	b.pass(time.Second)
	again := b.director("x")
	again.Run, again.StartedAt = "another", b.now
	answer := b.beats(again, "a")
	b.same("lapsed", answer.Lapsed, true)
	b.same("taken", answer.Taken, []string{"a"})
	b.holders(map[string]string{"a": "x"})
	b.same("taken by another", b.beats(b.director("y"), "a", "b").Taken, []string{"b"})
}

func beatSuperseded(b *fixture) {
	first, second := b.director("x"), b.director("x")
	b.beats(first, "a")
	second.Run = "another"
	b.noBeat(second) // same moment: the existing one stays
	second.StartedAt = start.Add(time.Second)
	b.beats(second, "a")
	b.noBeat(first)
	first.Expires = b.now
	b.noBeat(first) // nor can it leave on behalf of the other one
	b.same("directors", b.directors(), []store.Director{second})
	b.pass(directorLease)
	b.beats(b.director("x")) // the later one is dead
	b.holders(map[string]string{})
}

func beatKey(b *fixture) {
	b.beats(b.director("x"))
	other := b.director("y")
	other.Key = "another"
	b.noBeat(other)
	b.pass(directorLease)
	other.Expires = b.now.Add(directorLease)
	b.beats(other)
	b.noBeat(b.director("x")) // now this one must stop
}

func beatVersion(b *fixture) {
	b.beats(b.director("x"))
	other := b.director("y")
	for version, may := range map[string]bool{"1.2.4": true, "v1.2.0": true, "dev": true, "1.3.3": false, "2.2.3": false} {
		other.Version = version
		if may {
			b.beats(other)
			b.leaves(other)
		} else {
			b.noBeat(other)
		}
	}
	b.same("listed", names(b.directors()), []string{"x"})
}

func beatRefused(b *fixture) {
	b.beats(b.director("x"), "b")
	before := surveyOf(b.ctx, b.Store, b.now, 0)
	other := b.director("y")
	other.Key = "another"
	b.noBeat(other)
	b.same("what is stored", surveyOf(b.ctx, b.Store, b.now, 0), before)
	b.same("heard", b.beats(b.director("x")).Heard, []store.Heard(nil))
}

func beatForgotten(b *fixture) {
	b.beats(b.director("x"), "a")
	dead := b.directors()
	b.pass(directorLease + store.ForgetAfter)
	b.beat(store.Beat{Director: b.director("y"), Dead: dead})
	b.same("listed", names(b.directors()), []string{"x", "y"})
	b.pass(time.Millisecond)
	b.beats(b.director("y")) // only by its clock, which may be the wrong one
	b.same("listed", names(b.directors()), []string{"x", "y"})
	b.beat(store.Beat{Director: b.director("y"), Dead: dead})
	b.same("listed", names(b.directors()), []string{"y"})
	b.holders(map[string]string{})
	b.same("taken", b.beats(b.director("y"), "a").Taken, []string{"a"})
}

// A director that beats by a clock that was set back has a row that looks old to those that do not know of
// that yet.
func beatByAnotherClock(b *fixture) {
	b.beats(b.director("x"), "a")
	read := b.directors()
	now := b.now
	b.now = now.Add(-2 * store.ForgetAfter)
	b.beats(b.director("x"))
	b.now = now.Add(time.Second)
	b.beat(store.Beat{Director: b.director("y"), Dead: read})
	b.same("listed", names(b.directors()), []string{"x", "y"})
	b.holders(map[string]string{"a": "x"})
}
