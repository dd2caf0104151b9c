package stream

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// flushOutput sends the new output of the followed tasks, within the budget of this tick.
// The rest comes later; if it becomes too much, output is skipped and the event is marked
// as truncated.
func (m *transients) flushOutput(ctx context.Context, s *httpio.Stream) error {
	o := m.output
	if o.crowded && len(o.followed) < maxFollowed {
		if err := m.followRunning(ctx); err != nil {
			return err
		}
	}
	o.budget = min(o.budget+outputRate*int(CoalesceInterval/time.Millisecond)/1000, outputRate)
	var events []api.Event
	var ended []*followed
	for i := range o.followed {
		f := o.followed[(o.next+i)%len(o.followed)]
		e, done, err := m.outputSince(ctx, f)
		if err != nil {
			return err
		}
		if e.Text != "" || e.Truncated {
			events = append(events, e)
		}
		if done {
			f.leave()
			ended = append(ended, f)
		}
	}
	o.next++
	o.followed = slices.DeleteFunc(o.followed, func(f *followed) bool { return slices.Contains(ended, f) })
	return m.write(s, kindOutput, events)
}

// followRunning follows the running tasks that are not followed yet, up to
// maxFollowed.
func (m *transients) followRunning(ctx context.Context) error {
	o := m.output
	running, err := m.events.Engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	o.crowded = false
	for i := range running {
		t := &running[i]
		if t.State == signalbox.Dispatching || !m.filter.takesTask(t) || slices.ContainsFunc(o.followed, func(f *followed) bool { return f.id == t.ID }) {
			continue
		}
		if len(o.followed) >= maxFollowed {
			o.crowded = true
			return nil
		}
		o.followed = append(o.followed, &followed{id: t.ID, queue: t.Queue, agent: t.Agent, begin: true})
	}
	return nil
}

// outputSince returns the new output of a task, within the budget. done says that nothing
// more will come.
func (m *transients) outputSince(ctx context.Context, f *followed) (e api.Event, done bool, err error) {
	e = api.Event{QueueID: f.id, Queue: f.queue, Agent: f.agent}
	out, ok := m.events.Runs.Output(ctx, f.id, f.after, 0)
	if !ok && !f.ended {
		out, ok = m.remoteOutputSince(ctx, f)
	}
	if !ok {
		if !f.ended {
			return e, false, nil // not followed here; its end will be in the journal
		}
		if out, err = m.lastOutput(ctx, f); err != nil {
			return e, true, err
		}
	}
	if f.begin {
		f.begin, f.after = false, out.Next
		return e, !ok, nil
	}
	e.Text, e.After, e.Truncated = m.output.cut(out)
	f.after = e.After + int64(len(e.Text))
	return e, !ok && f.after >= out.Next, nil
}

// remoteOutputSince returns the new output of a task that another director follows. ok is
// false while the output is unknown, or if there is no other director.
func (m *transients) remoteOutputSince(ctx context.Context, f *followed) (out api.Output, ok bool) {
	if f.remote == nil {
		if len(m.events.Forwarder.Others(ctx)) == 0 {
			return out, false
		}
		f.remote = m.events.Tails.followRemote(ctx, f.id)
	}
	if !f.remote.seen.Load() {
		return out, false
	}
	p := f.remote.tail.Read(ctx, f.after, 0)
	return api.Output{Text: p.Text, Seq: p.Seq, Next: p.Next, Truncated: p.Truncated}, true
}

// cut returns as much of an output as the budget allows, and charges it to the budget.
func (o *outputEvents) cut(out api.Output) (text string, from int64, truncated bool) {
	text, from, truncated = out.Text, out.Seq, out.Truncated
	if over := len(text) - maxOutputGap; over > 0 {
		text, from, truncated = text[over:], from+int64(over), true
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text, from = text[1:], from+1
	}
	text = wholeEnd(text[:min(len(text), o.budget)])
	o.budget -= len(text)
	return text, from, truncated
}

// lastOutput returns the rest of the log of an ended task. A task without a log has no
// output events: its answer is in its result.
func (m *transients) lastOutput(ctx context.Context, f *followed) (api.Output, error) {
	none := api.Output{Seq: f.after, Next: f.after, Done: true}
	t, err := m.events.Engine.Read().Task(ctx, f.id)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || (err == nil && !t.State.Terminal()) {
		return none, nil // pruned, or requeued
	}
	if err != nil {
		return none, err
	}
	res, err := m.events.Engine.Read().Result(ctx, f.id)
	if err != nil || res.Tail == "" {
		return none, err
	}
	return m.events.Tails.storedOutput(ctx, &t, f.after)
}

// wholeEnd drops an incomplete character at the end.
func wholeEnd(s string) string {
	for n := 0; n < utf8.UTFMax && len(s) > 0; n++ {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}
