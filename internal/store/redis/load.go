package redis

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Load reads what is wanted, at one moment.
func (g *backend) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	g.rememberName(w.Writer)
	q, l := wanted(w)
	return l, g.answers(ctx, g.writer, q)
}

// wanted converts a Want to questions, whose answers fill the Loaded.
func wanted(w *verbs.Want) (*questions, *verbs.Loaded) {
	q := &questions{}
	l := &verbs.Loaded{
		Tasks: make([]*signalbox.Task, len(w.Tasks)), Keys: make([]*signalbox.Task, len(w.Keys)),
		Requests: make([]*signalbox.Request, len(w.Requests)), Lines: make([][]*signalbox.Task, len(w.Lines)),
		Queues: make([]verbs.QueueCount, len(w.Queues)), Limits: make([]int, len(w.Limits)),
		Turns: make([][]*signalbox.Task, len(w.Turns)), Named: make([]bool, len(w.Named)),
		Slots: make([][]signalbox.Slot, len(w.Slots)), Docs: make([]*verbs.Doc, len(w.Docs)), Pages: make([][]verbs.Doc, len(w.Pages)),
	}
	q.head(w.Writer, func(h storeCounters) {
		l.Counters, l.Number = h.Counters, h.number
		if w.InUse {
			l.InUse = h.inUse
		}
	})
	if w.Since != 0 {
		q.ask(eachText(func(_ int, log string) { l.Logs = append(l.Logs, []byte(log)) }), "logs", since(w.Since))
	}
	q.tasks(w, l)
	q.lines(w, l)
	q.counted(w, l)
	q.times(w, l)
	for i := range w.Docs {
		q.docOf(w.Docs[i], &l.Docs[i])
	}
	for i := range w.Pages {
		q.page(&w.Pages[i], &l.Pages[i])
	}
	return q, l
}

// since is the beginning of the log of the batch that began at that moment.
func since(moment int64) string {
	return rueidis.BinaryString(binary.BigEndian.AppendUint64(nil, uint64(moment)))
}

func (q *questions) tasks(w *verbs.Want, l *verbs.Loaded) {
	if len(w.Tasks) > 0 {
		q.ask(rowsInto(l.Tasks), "get", "tasks", w.Tasks...)
	}
	if len(w.Keys) > 0 {
		q.ask(rowsInto(l.Keys), "keyed", w.Keys[0], w.Keys[1:]...)
	}
	if len(w.Requests) == 0 {
		return
	}
	seqs := make([]string, len(w.Requests))
	for i, seq := range w.Requests {
		seqs[i] = prefixOf(seq)
	}
	var rows []string
	q.ask(func(m rueidis.RedisMessage) (err error) {
		rows, err = texts(m)
		return err
	}, "get", "requests", seqs...)
	q.ask(func(m rueidis.RedisMessage) error {
		sealed, err := texts(m)
		for i := 0; err == nil && i < len(rows) && i < len(sealed) && i < len(l.Requests); i++ {
			if rows[i] != "" {
				l.Requests[i], err = readRequest(rows[i], bytesOf(sealed[i]))
			}
		}
		return err
	}, "get", "sealed", seqs...)
}

func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func (q *questions) lines(w *verbs.Want, l *verbs.Loaded) {
	for i := range w.Lines {
		line := &w.Lines[i]
		least := "-"
		if line.After.OrderKey != 0 || line.After.Place != 0 {
			least = behind(prefixOf(line.After.OrderKey, line.After.Place))
		}
		q.of(inReady, line.Queue, listInto(&l.Lines[i]), "ZRANGEBYLEX", least, "+", "LIMIT", "0", strconv.Itoa(line.N))
	}
	for i, session := range w.Turns {
		q.of(inTurn, session, listInto(&l.Turns[i]), "ZRANGE", "0", "-1")
	}
	for i, agent := range w.Slots {
		q.ask(slotsInto(&l.Slots[i]), "of", "slots", "1", "ZRANGEBYLEX", "slots.name", "["+agent+"\x00", "("+agent+"\x01")
	}
}

func (q *questions) counted(w *verbs.Want, l *verbs.Loaded) {
	if len(w.Queues) > 0 {
		q.ask(eachText(func(i int, text string) {
			if i < len(l.Queues) {
				l.Queues[i] = queueCount(text)
			}
		}), "get", "queues", w.Queues...)
	}
	if len(w.Limits) > 0 {
		q.ask(eachText(func(i int, text string) {
			if i < len(l.Limits) {
				l.Limits[i] = int(integer(text))
			}
		}), "get", "limits", w.Limits...)
	}
	if len(w.Named) > 0 {
		q.ask(eachText(func(i int, text string) {
			if i < len(l.Named) {
				l.Named[i] = text != ""
			}
		}), "get", "named", w.Named...)
	}
}

func queueCount(text string) verbs.QueueCount {
	waiting, ready, _ := strings.Cut(text, " ")
	return verbs.QueueCount{Waiting: int(integer(waiting)), Ready: int(integer(ready))}
}

func (q *questions) times(w *verbs.Want, l *verbs.Loaded) {
	if d := w.Due; d != nil {
		last := behind(prefixOf(d.Until.UnixMilli(), math.MaxInt64))
		q.of(inTimed, "", listInto(&l.Due), "ZRANGEBYLEX", behind(prefixOf(d.After.UnixMilli(), d.AfterPlace)), last, "LIMIT", "0", strconv.Itoa(d.N))
		q.ask(eachText(func(_ int, member string) { l.NextDue = timeAt(member) }),
			"call", "ZRANGEBYLEX", "timed", last, "+", "LIMIT", "0", "1")
	}
	if e := w.Ended; e != nil {
		q.of(inEnded, "", listInto(&l.Ended), "ZRANGEBYLEX", behind(prefixOf(e.After.EndedMS, e.After.Seq)), before(prefixOf(e.Before)), "LIMIT", "0", strconv.Itoa(e.N))
	}
	if w.Cut != nil {
		q.beginning(*w.Cut, &l.Cut)
	}
}

// timeAt is the time at the beginning of a member.
func timeAt(member string) time.Time { return time.UnixMilli(number(member)).UTC() }
