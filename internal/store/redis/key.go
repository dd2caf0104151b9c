package redis

import (
	"encoding/binary"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
)

// Numbers within members are eight bytes that sort as the numbers do, negative ones too. All members of an
// index have score 0, so they are sorted by their bytes: unlike scores, that is exact for every int64.
func appendNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)^(1<<63))
}

func number(b string) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64([]byte(b[:8])) ^ (1 << 63))
}

// prefixOf is the common prefix of all members with these numbers.
func prefixOf(numbers ...int64) string {
	var b []byte
	for _, n := range numbers {
		b = appendNumber(b, n)
	}
	return string(b)
}

// Bounds of a range of members: those before a spot, and those after all members at it. No id contains the
// byte 0xff.
func before(spot string) string { return "(" + spot }
func behind(spot string) string { return "(" + spot + "\xff" }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// arena allocates many short strings in few large ones.
type arena struct{ b []byte }

const arenaSize = 64 << 10

// begin reserves space, and returns where the next string begins.
func (a *arena) begin(size int) int {
	if cap(a.b)-len(a.b) < size {
		a.b = make([]byte, 0, max(arenaSize, size))
	}
	return len(a.b)
}

// since returns what was appended. The bytes are not modified again.
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

// indexes lists the key of each index, and how many numbers precede the ID in its members; runs
// have no ID: only the third number is read.
var indexes = [...]struct {
	key     string
	numbers int
}{
	inAll: {"all", 2}, inShifted: {"shifted", 2}, inReady: {"ready:", 2}, inHeld: {"held:", 2}, inTimed: {"timed", 2}, inBounded: {"bounded", 2},
	inCreated: {"created", 2}, inFlying: {"flying", 1}, inTurn: {"turns:", 2}, inEnded: {"ended", 2}, inRuns: {"runs:", 3}, inChildren: {"children:", 1},
}

// indexEntry is a task's entry in an index.
type indexEntry struct {
	index   index
	name    string // of the queue, session, agent or parent
	numbers [3]int64
}

// indexEntries lists the entries of a task, except those in ids and keys, which it always has.
func indexEntries(list []indexEntry, t *signalbox.Task) []indexEntry {
	if t == nil {
		return list
	}
	at := [3]int64{t.OrderKey(), t.Place}
	switch {
	case t.State.Waiting():
		if created := t.CreatedAt.UnixMilli(); created == at[0] {
			list = append(list, indexEntry{inAll, "", at})
		} else {
			list = append(list, indexEntry{inShifted, "", at}, indexEntry{inCreated, "", [3]int64{created, t.Seq}})
		}
		line := inHeld
		if t.Ready {
			line = inReady
		}
		list = append(list, indexEntry{line, t.Queue, at})
		if !t.Ready && !t.NotBefore.IsZero() {
			list = append(list, indexEntry{inTimed, "", [3]int64{t.NotBefore.UnixMilli(), t.Place}})
		}
		if !t.WaitUntil.IsZero() {
			list = append(list, indexEntry{inBounded, "", [3]int64{t.WaitUntil.UnixMilli(), t.Place}})
		}
	case t.State.InFlight():
		list = append(list, indexEntry{inFlying, "", [3]int64{t.Fence}})
	default:
		ended := t.EndedAt.UnixMilli()
		list = append(list, indexEntry{inEnded, "", [3]int64{ended, t.Seq}})
		if t.State == signalbox.Completed {
			list = append(list, indexEntry{inRuns, t.Agent, [3]int64{ended, t.Seq, max(0, ended-t.StartedAt.UnixMilli())}})
		}
	}
	if t.SessionID != "" && !t.State.Terminal() {
		list = append(list, indexEntry{inTurn, t.SessionID, at})
	}
	if t.ParentID != "" {
		list = append(list, indexEntry{inChildren, t.ParentID, [3]int64{t.Seq}})
	}
	return list
}

// member is the member of a task in the index.
func (a *arena) member(p *indexEntry, id string) string {
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
