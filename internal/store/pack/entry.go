package pack

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// A new field is added at the end, under a new version.
const firstVersion = 1

// The versions of a journal entry. Each includes the fields of the previous one.
const (
	withOwner    = 2
	withSchedule = 3
	withRetryOf  = 4
	withAccount  = 5
)

// The versions of a request. Each includes the fields of the previous one, and adds: withTools the tools it may
// use, withCall the tool that it calls, withTrace its span, withEnvBy that its env was not set by an admin,
// withChecks how its work is checked, withWorkspace where it works, withLand what it lands.
const (
	withTools     = 2
	withCall      = 3
	withTrace     = 4
	withEnvBy     = 5
	withChecks    = 6
	withWorkspace = 7
	withLand      = 8
)

// Entry appends a length-prefixed entry to a row of the journal, which holds consecutive entries. The Seq is
// not stored: the row has that of its first entry.
func (p *Packer) Entry(b []byte, e *signalbox.Entry) []byte {
	version := byte(firstVersion)
	if e.Owner != "" {
		version = withOwner
	}
	if e.Schedule != "" {
		version = withSchedule
	}
	if e.RetryOf != "" {
		version = withRetryOf
	}
	if e.Account != "" {
		version = withAccount
	}
	p.b = append(p.b[:0], version)
	p.Int(e.At.UnixMilli())
	p.Int(e.Fence)
	p.Int(int64(e.Attempts))
	p.Texts(string(e.Kind), e.QueueID, string(e.State), string(e.Reason), e.Message, e.Queue, e.Agent, string(e.Source), e.By)
	if version >= withOwner {
		p.Texts(e.Owner)
	}
	if version >= withSchedule {
		p.Texts(e.Schedule)
	}
	if version >= withRetryOf {
		p.Texts(e.RetryOf)
	}
	if version >= withAccount {
		p.Texts(e.Account)
	}
	b = binary.AppendUvarint(b, uint64(len(p.b)))
	return append(b, p.b...)
}

var errJournal = errors.New("a row of the journal cannot be read")

// ReadEntries decodes a row whose first entry has the Seq seq.
func ReadEntries(b []byte, seq int64) ([]signalbox.Entry, error) {
	var list []signalbox.Entry
	for len(b) > 0 {
		d := Reader{b: b}
		body := d.Bytes()
		b = d.b
		e, err := readEntry(body)
		if d.Bad || err != nil {
			return list, errJournal
		}
		e.Seq = seq
		seq++
		list = append(list, e)
	}
	return list, nil
}

func readEntry(body []byte) (signalbox.Entry, error) {
	d := Reader{b: body}
	if len(body) == 0 || body[0] < firstVersion || body[0] > withAccount {
		return signalbox.Entry{}, errJournal
	}
	d.b = body[1:]
	at, fence, attempts := d.Int(), d.Int(), d.Int()
	e := signalbox.Entry{
		At: time.UnixMilli(at).UTC(), Fence: fence, Attempts: int(attempts),
		Kind: signalbox.EventKind(d.Text()), QueueID: d.Text(), State: signalbox.State(d.Text()),
		Reason: signalbox.Reason(d.Text()), Message: d.Text(), Queue: d.Text(), Agent: d.Text(),
		Source: signalbox.Source(d.Text()), By: d.Text(),
	}
	if body[0] >= withOwner {
		e.Owner = d.Text()
	}
	if body[0] >= withSchedule {
		e.Schedule = d.Text()
	}
	if body[0] >= withRetryOf {
		e.RetryOf = d.Text()
	}
	if body[0] >= withAccount {
		e.Account = d.Text()
	}
	if d.Bad {
		return e, errJournal
	}
	return e, nil
}
