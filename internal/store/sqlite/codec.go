package sqlite

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Values that nothing is sought by are packed: a version byte, then numbers
// as varints and strings led by their length, in a fixed order. Unlike JSON
// that keeps every byte of a string, and costs the writer a tenth of the
// time. A new field goes to the end, under a new version.
const packedVersion = 1

// The versions of a journal entry: each has what the one before it has.
const (
	withOwner    = 2
	withSchedule = 3
)

// The versions of a request, likewise: withTools says what tools it may use,
// withCall what tool it calls, withTrace under which span it is traced.
const (
	withTools = 2
	withCall  = 3
	withTrace = 4
)

// A row of the journal holds entries one after the other, each led by its
// length. The Seq is not stored; it is that of the row's first entry, and one
// more for each. entry appends one to such a row.
func (p *packer) entry(b []byte, e *signalbox.Entry) []byte {
	version := byte(packedVersion)
	if e.Owner != "" {
		version = withOwner
	}
	if e.Schedule != "" {
		version = withSchedule
	}
	p.b = append(p.b[:0], version)
	p.int(e.At.UnixMilli())
	p.int(e.Fence)
	p.int(int64(e.Attempts))
	p.texts(string(e.Kind), e.QueueID, string(e.State), string(e.Reason), e.Message, e.Queue, e.Agent, string(e.Source), e.By)
	if version >= withOwner {
		p.texts(e.Owner)
	}
	if version >= withSchedule {
		p.texts(e.Schedule)
	}
	b = binary.AppendUvarint(b, uint64(len(p.b)))
	return append(b, p.b...)
}

var errJournal = errors.New("a row of the journal cannot be read")

// readEntries decodes a row whose first entry has the number seq.
func readEntries(b []byte, seq int64) ([]signalbox.Entry, error) {
	var list []signalbox.Entry
	for len(b) > 0 {
		d := decoder{b: b}
		body := d.bytes()
		b = d.b
		e, err := readEntry(body)
		if d.bad || err != nil {
			return list, errJournal
		}
		e.Seq = seq
		seq++
		list = append(list, e)
	}
	return list, nil
}

func readEntry(body []byte) (signalbox.Entry, error) {
	d := decoder{b: body}
	if len(body) == 0 || body[0] < packedVersion || body[0] > withSchedule {
		return signalbox.Entry{}, errJournal
	}
	d.b = body[1:]
	at, fence, attempts := d.int(), d.int(), d.int()
	e := signalbox.Entry{
		At: time.UnixMilli(at).UTC(), Fence: fence, Attempts: int(attempts),
		Kind: signalbox.EventKind(d.text()), QueueID: d.text(), State: signalbox.State(d.text()),
		Reason: signalbox.Reason(d.text()), Message: d.text(), Queue: d.text(), Agent: d.text(),
		Source: signalbox.Source(d.text()), By: d.text(),
	}
	if body[0] >= withOwner {
		e.Owner = d.text()
	}
	if body[0] >= withSchedule {
		e.Schedule = d.text()
	}
	if d.bad {
		return e, errJournal
	}
	return e, nil
}

// packer writes values one after the other.
type packer struct{ b []byte }

func (p *packer) int(v int64) { p.b = binary.AppendVarint(p.b, v) }

func (p *packer) bool(v bool) {
	p.b = append(p.b, 0)
	if v {
		p.b[len(p.b)-1] = 1
	}
}

func (p *packer) float(v float64) { p.b = binary.BigEndian.AppendUint64(p.b, math.Float64bits(v)) }

func (p *packer) texts(list ...string) {
	for _, s := range list {
		p.b = binary.AppendUvarint(p.b, uint64(len(s)))
		p.b = append(p.b, s...)
	}
}

// decoder reads what a packer wrote; bad says that something did not fit.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, n = true, 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	size, n := binary.Uvarint(d.b)
	if n <= 0 || size > uint64(len(d.b)-n) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[n : n+int(size)]
	d.b = d.b[n+int(size):]
	return v
}

func (d *decoder) text() string { return string(d.bytes()) }

func (d *decoder) bool() bool {
	if len(d.b) == 0 {
		d.bad = true
		return false
	}
	v := d.b[0] != 0
	d.b = d.b[1:]
	return v
}

func (d *decoder) float() float64 {
	if len(d.b) < 8 {
		d.bad = true
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(d.b))
	d.b = d.b[8:]
	return v
}
