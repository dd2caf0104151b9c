package redis

import (
	"encoding/binary"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
)

// Numbers within members are eight bytes that sort as the numbers do, negative
// ones too. All members of an index have score 0, so that they stand in the
// order of their bytes: unlike a score, that is exact for every int64.
func appendNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)^(1<<63))
}

func number(b string) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(b[:8])) ^ (1 << 63))
}

// spot is the beginning of all members that stand at these numbers.
func spot(numbers ...int64) string {
	var b []byte
	for _, n := range numbers {
		b = appendNumber(b, n)
	}
	return string(b)
}

// Bounds of a range of members: those before a spot, and those behind all that
// stand there. No id has the byte 0xff in it.
func before(spot string) string { return "(" + spot }
func behind(spot string) string { return "(" + spot + "\xff" }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// arena makes many short strings of few long ones.
type arena struct{ b []byte }

const arenaSize = 64 << 10

// begin makes room, and returns where the next string begins.
func (a *arena) begin(size int) int {
	if cap(a.b)-len(a.b) < size {
		a.b = make([]byte, 0, max(arenaSize, size))
	}
	return len(a.b)
}

// since returns what was appended. The bytes are not written again.
func (a *arena) since(begin int) string { return rueidis.BinaryString(a.b[begin:len(a.b):len(a.b)]) }

func (a *arena) number(n int64) string {
	begin := a.begin(8)
	a.b = appendNumber(a.b, n)
	return a.since(begin)
}

// index is a sorted set of tasks.
type index int

const (
	inAll index = iota
	inShifted
	inReady
	inHeld
	inTimed
	inBounded
	inCreated
	inFlying
	inTurn
	inEnded
	inRuns
	inChildren
)

// indexes says under which key an index is, and how many numbers lead the id
// in its members; runs have no id: the third number is all that is asked for.
var indexes = [...]struct {
	key     string
	numbers int
}{
	inAll: {"all", 2}, inShifted: {"shifted", 2}, inReady: {"ready:", 2}, inHeld: {"held:", 2}, inTimed: {"timed", 2}, inBounded: {"bounded", 2},
	inCreated: {"created", 2}, inFlying: {"flying", 1}, inTurn: {"turns:", 2}, inEnded: {"ended", 2}, inRuns: {"runs:", 3}, inChildren: {"children:", 1},
}

// place is where a task stands in an index.
type place struct {
	index   index
	name    string // of the queue, session, agent or parent
	numbers [3]int64
}

// places lists where a task stands; in ids and by its key it stands always.
func places(list []place, t *signalbox.Task) []place {
	if t == nil {
		return list
	}
	at := [3]int64{t.OrderKey(), t.Place}
	switch {
	case t.State == signalbox.Pending:
		if created := t.CreatedAt.UnixMilli(); created == at[0] {
			list = append(list, place{inAll, "", at})
		} else {
			list = append(list, place{inShifted, "", at}, place{inCreated, "", [3]int64{created, t.Seq}})
		}
		line := inHeld
		if t.Ready {
			line = inReady
		}
		list = append(list, place{line, t.Queue, at})
		if !t.Ready && !t.NotBefore.IsZero() {
			list = append(list, place{inTimed, "", [3]int64{t.NotBefore.UnixMilli(), t.Place}})
		}
		if !t.WaitUntil.IsZero() {
			list = append(list, place{inBounded, "", [3]int64{t.WaitUntil.UnixMilli(), t.Place}})
		}
	case t.State.InFlight():
		list = append(list, place{inFlying, "", [3]int64{t.Fence}})
	default:
		ended := t.EndedAt.UnixMilli()
		list = append(list, place{inEnded, "", [3]int64{ended, t.Seq}})
		if t.State == signalbox.Completed {
			list = append(list, place{inRuns, t.Agent, [3]int64{ended, t.Seq, max(0, ended-t.StartedAt.UnixMilli())}})
		}
	}
	if t.SessionID != "" && !t.State.Terminal() {
		list = append(list, place{inTurn, t.SessionID, at})
	}
	if t.ParentID != "" {
		list = append(list, place{inChildren, t.ParentID, [3]int64{t.Seq}})
	}
	return list
}

// member is what stands for the task in the index.
func (a *arena) member(p *place, id string) string {
	begin := a.begin(24 + len(id))
	n := indexes[p.index].numbers
	for _, v := range p.numbers[:n] {
		a.b = appendNumber(a.b, v)
	}
	if p.index != inRuns {
		a.b = append(a.b, id...)
	}
	return a.since(begin)
}
