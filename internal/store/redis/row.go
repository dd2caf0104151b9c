package redis

import (
	"encoding/binary"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// A row of a task begins with what scripts read: its Seq in eight bytes, by which its request and result are
// found; then, if it waits, one more than the length of its queue's name in two bytes, its place in 16 and
// the queue; else two zero bytes. Then comes the packed task.
func (a *arena) task(t *signalbox.Task) string {
	begin := a.begin(512)
	a.b = appendNumber(a.b, t.Seq)
	if t.State.Waiting() {
		a.b = binary.BigEndian.AppendUint16(a.b, uint16(len(t.Queue)+1))
		a.b = append(appendNumber(appendNumber(a.b, t.OrderKey()), t.Place), t.Queue...)
	} else {
		a.b = append(a.b, 0, 0)
	}
	a.b = pack.Task(a.b, t)
	return a.since(begin)
}

func readTask(row string) (*signalbox.Task, error) {
	const fixed = 10
	if len(row) < fixed {
		return nil, damaged("row of a task")
	}
	b := []byte(row[8:])
	if size := int(binary.BigEndian.Uint16(b)); size == 0 {
		b = b[2:]
	} else if lead := 2 + 16 + size - 1; len(b) >= lead {
		b = b[lead:]
	} else {
		return nil, damaged("row of a task")
	}
	t, err := pack.ReadTask(b)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// texts joins texts; all but the last are length-prefixed.
func (a *arena) texts(list ...string) string {
	size := 0
	for _, s := range list {
		size += len(s) + binary.MaxVarintLen64
	}
	begin := a.begin(size)
	for n, s := range list {
		if n < len(list)-1 {
			a.b = binary.AppendUvarint(a.b, uint64(len(s)))
		}
		a.b = append(a.b, s...)
	}
	return a.since(begin)
}

// split reverses texts: n length-prefixed texts, and the rest.
func split(row string, n int) (list []string, ok bool) {
	for range n {
		size, used := binary.Uvarint([]byte(row[:min(len(row), binary.MaxVarintLen64)]))
		if used <= 0 || size > uint64(len(row)-used) {
			return nil, false
		}
		list, row = append(list, row[used:used+int(size)]), row[used+int(size):]
	}
	return append(list, row), true
}

func (a *arena) request(r *signalbox.Request) string {
	return a.texts(string(pack.Request(r)), r.Prompt)
}

func readRequest(row string, sealed []byte) (*signalbox.Request, error) {
	parts, ok := split(row, 1)
	if !ok {
		return nil, damaged("request")
	}
	r, err := pack.ReadRequest(parts[1], []byte(parts[0]), sealed)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

func (a *arena) result(r *signalbox.Result) string {
	return a.texts(string(pack.Result(r)), r.Output, r.Tail)
}

func readResult(row string) (*signalbox.Result, error) {
	parts, ok := split(row, 2)
	if !ok {
		return nil, damaged("result")
	}
	r, err := pack.ReadResult(parts[1], parts[2], []byte(parts[0]))
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// slotName is the field of a slot; those of an agent are adjacent.
func (a *arena) slotName(agent string, slot int) string {
	begin := a.begin(len(agent) + 9)
	a.b = appendNumber(append(append(a.b, agent...), 0), int64(slot))
	return a.since(begin)
}

// A row of a slot: its number, fence, end (0: none) and whether it is withheld, then agent and task.
func (a *arena) slot(s *signalbox.Slot) string {
	begin := a.begin(25)
	a.b = appendNumber(appendNumber(a.b, int64(s.Slot)), s.Fence)
	ends := int64(0)
	if !s.Expires.IsZero() {
		ends = s.Expires.UnixMilli()
	}
	a.b = appendNumber(a.b, ends)
	withheld := "0"
	if s.Withheld {
		withheld = "1"
	}
	return a.texts(a.since(begin), withheld, s.Agent, s.TaskID)
}

func readSlot(row string) (signalbox.Slot, error) {
	parts, ok := split(row, 3)
	if !ok || len(parts[0]) != 24 {
		return signalbox.Slot{}, damaged("row of a slot")
	}
	s := signalbox.Slot{
		Agent: parts[2], TaskID: parts[3], Slot: int(number(parts[0])), Fence: number(parts[0][8:]), Withheld: parts[1] == "1",
	}
	if ends := number(parts[0][16:]); ends != 0 {
		s.Expires = time.UnixMilli(ends).UTC()
	}
	return s, nil
}

// A row of a doc is its Sort in eight bytes, its id and its body.
func (a *arena) doc(d *verbs.Doc) string {
	begin := a.begin(8 + binary.MaxVarintLen64 + len(d.ID) + len(d.Body))
	a.b = binary.AppendUvarint(appendNumber(a.b, d.Sort), uint64(len(d.ID)))
	a.b = append(append(a.b, d.ID...), d.Body...)
	return a.since(begin)
}

func readDoc(kind, row string) (verbs.Doc, error) {
	if len(row) < 8 {
		return verbs.Doc{}, damaged(kind)
	}
	parts, ok := split(row[8:], 1)
	if !ok {
		return verbs.Doc{}, damaged(kind)
	}
	return verbs.Doc{DocKey: verbs.DocKey{Kind: kind, ID: parts[0]}, Sort: number(row), Body: []byte(parts[1])}, nil
}

func damaged(what string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt, "a stored %s in Redis cannot be read: something else has written to the store's keys, or a newer signalbox has", what)
}
