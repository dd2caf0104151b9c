package storetest

import (
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

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
	b.holders(map[string]string{"a": "y", "b": "x"}) // c is nobody's, though nobody took it
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
	b.noBeat(second) // of the same moment: the one that is there stays
	second.StartedAt = start.Add(time.Second)
	b.beats(second, "a")
	b.noBeat(first)
	first.Expires = b.now
	b.noBeat(first) // it cannot leave for the other one, either
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
	b.noBeat(b.director("x")) // now it is the one that may not live
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
	b.beats(b.director("y")) // by its clock alone, which may be the one that is wrong
	b.same("listed", names(b.directors()), []string{"x", "y"})
	b.beat(store.Beat{Director: b.director("y"), Dead: dead})
	b.same("listed", names(b.directors()), []string{"y"})
	b.holders(map[string]string{})
	b.same("taken", b.beats(b.director("y"), "a").Taken, []string{"a"})
}

// One that beats by a clock that was set back has a row that looks old to those
// who do not know of that yet.
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
