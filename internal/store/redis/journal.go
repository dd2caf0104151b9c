package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// record is a batch's part of the journal: a stream entry, named after its last Seq.
type record struct {
	first, last int64
	writer      string
	entries     string
}

// recordsInto reads the records returned by XRANGE or XREVRANGE.
func recordsInto(to *[]record) func(m rueidis.RedisMessage) error {
	return func(m rueidis.RedisMessage) error {
		list, err := m.ToArray()
		for i := 0; err == nil && i < len(list); i++ {
			var r record
			r, err = readRecord(list[i])
			*to = append(*to, r)
		}
		return err
	}
}

func readRecord(m rueidis.RedisMessage) (record, error) {
	parts, err := m.ToArray()
	if err != nil || len(parts) != 2 {
		return record{}, errAnswer
	}
	name, err := parts[0].ToString()
	if err != nil {
		return record{}, err
	}
	f, err := texts(parts[1])
	if err != nil || len(f) < 8 {
		return record{}, damaged("record of the journal")
	}
	return record{first: integer(f[1]), last: lastOf(name), writer: f[5], entries: f[7]}, nil
}

// lastOf is the last Seq of a record, by its name.
func lastOf(name string) int64 {
	seq, _, _ := strings.Cut(name, "-")
	return integer(seq)
}

// Entries returns journal entries with a Seq above after, oldest first. Records differ in length, so they are
// read a few at a time.
func (g *backend) Entries(ctx context.Context, after int64, limit int) ([]verbs.Entry, error) {
	const few, many = 8, 256
	var list []verbs.Entry
	after = max(0, after)
	for count := few; len(list) < limit; count = min(2*count, many) {
		var records []record
		var cut int64
		var q questions
		q.head("", func(h storeCounters) { cut = h.cut })
		q.ask(recordsInto(&records), "call", "XRANGE", "journal", decimal(after+1), "+", "COUNT", strconv.Itoa(count))
		if err := g.answers(ctx, g.reader, &q); err != nil {
			return nil, err
		}
		for i := range records {
			entries, err := pack.ReadEntries([]byte(records[i].entries), records[i].first)
			if err != nil {
				return nil, damaged("record of the journal")
			}
			for _, e := range entries {
				if e.Seq > after && e.Seq > cut && len(list) < limit {
					list = append(list, verbs.Entry{Entry: e, Writer: records[i].writer})
				}
			}
			after = records[i].last
		}
		if len(records) < count {
			break
		}
	}
	return list, nil
}

// EntryRange returns the oldest and newest Seq of the journal.
func (g *backend) EntryRange(ctx context.Context) (oldest, newest int64, err error) {
	var first, last []record
	var cut int64
	var q questions
	q.head("", func(h storeCounters) { cut = h.cut })
	q.ask(recordsInto(&first), "call", "XRANGE", "journal", "-", "+", "COUNT", "1")
	q.ask(recordsInto(&last), "call", "XREVRANGE", "journal", "+", "-", "COUNT", "1")
	if err = g.answers(ctx, g.reader, &q); err != nil || len(first) == 0 || len(last) == 0 {
		return 0, 0, err
	}
	return max(first[0].first, cut+1), last[0].last, nil
}

// beginning asks for the Seq up to which the journal, from its beginning, is older than a time. The first
// record that is not old as a whole may be partly old.
func (q *questions) beginning(older time.Time, to *int64) {
	q.ask(func(m rueidis.RedisMessage) error {
		parts, err := texts(m)
		if err != nil || len(parts) == 0 {
			return err
		}
		*to = lastOf(parts[0])
		if len(parts) < 3 {
			return nil
		}
		entries, err := pack.ReadEntries([]byte(parts[2]), integer(parts[1]))
		if err != nil {
			return damaged("record of the journal")
		}
		for i := 0; i < len(entries) && entries[i].At.Before(older); i++ {
			*to = entries[i].Seq
		}
		return nil
	}, "beginning", decimal(older.Add(time.Millisecond-1).UnixMilli()))
}
