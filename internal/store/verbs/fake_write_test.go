package verbs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// commit writes a delta, as a backend must.
func (d *data) commit(c *verbs.Delta, t testing.TB) error {
	if c.From.Moment != d.Moment {
		return verbs.ErrMoved
	}
	for i := range c.Tasks {
		if x := &c.Tasks[i]; x.Before == nil && d.taken(x.After) {
			return verbs.ErrTaken
		}
	}
	if c.From != d.Counters && d.Moment != 0 {
		t.Errorf("the delta begins at %+v, the server is at %+v", c.From, d.Counters)
	}
	for i := range c.Tasks {
		d.change(&c.Tasks[i], t)
	}
	for i := range c.Requests {
		d.requests[c.Requests[i].Seq] = copyRequest(c.Requests[i].Request)
	}
	for i := range c.Results {
		d.results[c.Results[i].Seq] = copyResult(c.Results[i].Result)
	}
	for _, s := range c.Slots {
		d.slot(s, t)
	}
	for _, q := range c.Queues {
		if d.queues[q.Queue] = q.QueueCount; q.QueueCount == (verbs.QueueCount{}) {
			delete(d.queues, q.Queue)
		}
	}
	for _, l := range c.Limits {
		if d.limits[l.Limit] = l.N; l.N == 0 {
			delete(d.limits, l.Limit)
		}
	}
	for _, doc := range c.Docs {
		if doc.Body == nil {
			delete(d.docs, doc.DocKey)
		} else {
			doc.Body = slices.Clone(doc.Body)
			d.docs[doc.DocKey] = doc
		}
	}
	for _, e := range c.Entries {
		e.At = ms(e.At)
		d.entries = append(d.entries, verbs.Entry{Entry: e, Writer: c.Writer})
	}
	d.entries = slices.DeleteFunc(d.entries, func(e verbs.Entry) bool { return e.Seq <= c.Cut })
	d.Counters, d.inUse, d.writers[c.Writer] = c.To, c.InUse, c.Number
	if c.Log != nil {
		if from, to := verbs.LogSpan(c.Log); from != c.From.Moment || to != c.To.Moment {
			t.Errorf("the log is of the moments %d to %d, the delta of %d to %d", from, to, c.From.Moment, c.To.Moment)
		}
		d.logs = append(d.logs, slices.Clone(c.Log))
		d.logs = d.logs[max(0, len(d.logs)-verbs.LogsKept):]
	}
	d.verify(t)
	return nil
}

func (d *data) taken(t *signalbox.Task) bool {
	return d.ids[t.ID] != 0 || (t.IdempotencyKey != "" && d.keys[t.IdempotencyKey] != 0)
}

func (d *data) change(c *verbs.TaskChange, t testing.TB) {
	seq := int64(0)
	if c.Before != nil {
		seq = c.Before.Seq
		if stored, known := d.tasks[seq]; !known || stored != stored0(*c.Before) {
			t.Errorf("the delta says that the task was\n%+v\nand it is\n%+v", *c.Before, stored)
		}
	} else if c.After.Seq <= d.Seq {
		t.Errorf("a new task has the number %d, the last one was %d", c.After.Seq, d.Seq)
	}
	if c.After == nil {
		delete(d.tasks, seq)
		delete(d.ids, c.Before.ID)
		delete(d.keys, c.Before.IdempotencyKey)
		delete(d.requests, seq)
		delete(d.results, seq)
		return
	}
	d.tasks[c.After.Seq] = stored0(*c.After)
	d.ids[c.After.ID] = c.After.Seq
	if key := c.After.IdempotencyKey; key != "" {
		d.keys[key] = c.After.Seq
	}
	if c.Before != nil && c.Before.HasEnv && c.After.State.Terminal() {
		q := d.requests[seq]
		q.SealedEnv = nil
		d.requests[seq] = q
	}
}

func (d *data) slot(c verbs.SlotChange, t testing.TB) {
	key := slotKey(c.Agent, c.Slot)
	stored, known := d.slots[key]
	if known != (c.Before != nil) || (known && stored.Fence != c.Before.Fence) {
		t.Errorf("the delta says that the slot was %+v, and it is %+v (%v)", c.Before, stored, known)
	}
	if c.After == nil {
		delete(d.slots, key)
		return
	}
	s := *c.After
	s.Expires = ms(s.Expires)
	d.slots[key] = s
}

// verify compares the counts with the rows.
func (d *data) verify(t testing.TB) {
	if len(d.tasks) > 300 {
		return // it would take too long
	}
	queues, limits := map[string]verbs.QueueCount{}, map[string]int{}
	for _, task := range d.tasks {
		if task.State != signalbox.Pending {
			continue
		}
		q := queues[task.Queue]
		q.Waiting++
		if task.Ready {
			q.Ready++
		}
		queues[task.Queue] = q
		limits[task.Limit]++
	}
	same(t, "queues", d.queues, queues)
	same(t, "limits", d.limits, limits)
	var inUse [2]int
	for _, s := range d.slots {
		if _, own := signalbox.ExecutorKind(s.Agent); own {
			continue
		}
		if signalbox.Isolated(s.Slot) {
			inUse[1]++
		} else {
			inUse[0]++
		}
	}
	same(t, "slots in use", d.inUse, inUse)
}

// stored0 is a row as a backend keeps it.
func stored0(t signalbox.Task) signalbox.Task {
	for _, at := range []*time.Time{&t.EnqueuedAt, &t.NotBefore, &t.WaitUntil, &t.CreatedAt, &t.DispatchedAt, &t.StartedAt, &t.EndedAt} {
		*at = ms(*at)
	}
	return t
}

func ms(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(at.UnixMilli()).UTC()
}

func copyRequest(q signalbox.Request) signalbox.Request {
	if q.Project != nil {
		p := *q.Project
		q.Project = &p
	}
	if q.Thinking != nil {
		v := *q.Thinking
		q.Thinking = &v
	}
	q.SealedEnv, q.AllowedTools = slices.Clone(q.SealedEnv), slices.Clone(q.AllowedTools)
	q.Arguments, q.Metadata = slices.Clone(q.Arguments), slices.Clone(q.Metadata)
	return q
}

func copyResult(r signalbox.Result) signalbox.Result {
	if r.ExitCode != nil {
		v := *r.ExitCode
		r.ExitCode = &v
	}
	return r
}
