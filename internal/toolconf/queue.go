package toolconf

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	maxConcurrent = 1_000_000
	longest       = 24 * time.Hour // of a timeout, a wait or a lease

	// A session lease that is asked for with no figures ends soon enough for
	// others to have their turn.
	defaultIdle = time.Minute
	defaultHold = 10 * time.Minute
)

var queueName = rule{want: "a queue's name: 1 to 64 letters, digits, dots, underscores or hyphens", ok: signalbox.ValidName}

func (r *reader) queues(top *section) {
	pair, _, ok := top.take(keyQueues)
	if !ok {
		return
	}
	all := r.open(pair.Value, pair.Line, keyQueues)
	if all == nil {
		return
	}
	r.merge.blocks = append(r.merge.blocks, r.where(pair.Line))
	for _, p := range all.list {
		r.merge.named[p.Key] = true
		key := keyQueues + "." + shownName(p.Key)
		if !queueName.ok(p.Key) {
			r.problem(p.Line, key, "want "+queueName.want)
			continue
		}
		if s := r.open(p.Value, p.Line, key); s != nil {
			r.queue(p.Key, s)
		}
	}
}

func (r *reader) queue(name string, s *section) {
	q := Queue{Where: r.where(s.line)}
	if _, given := s.given("concurrent"); !given {
		r.problem(s.line, s.key, "it has no concurrent: want how many calls may run side by side, such as concurrent: 4")
	}
	q.Concurrent = s.whole(1, maxConcurrent, "concurrent")
	q.MaxWait, _ = s.duration(0, longest, "max_wait", "maxWaitMs")
	q.MaxWaiters = s.whole(0, maxConcurrent, "max_waiters", "maxWaiters")
	q.LeaseIdle, q.LeaseHold = r.lease(s)
	q.Shared = s.boolean(false, "shared")
	s.finish(nil)
	if q.Concurrent > 0 {
		r.merge.addQueue(name, q)
	}
}

// lease reads the session lease of a queue: true, or its bounds.
func (r *reader) lease(s *section) (idle, hold time.Duration) {
	pair, key, ok := s.take("session")
	if !ok {
		return 0, 0
	}
	if pair.Value.Form == conffile.Boolean {
		if pair.Value.Text == "true" {
			return defaultIdle, defaultHold
		}
		return 0, 0
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "true, or a section with idle and max_hold", false)
		return 0, 0
	}
	in := r.open(pair.Value, pair.Line, key)
	if in == nil {
		return 0, 0
	}
	idle, hold = defaultIdle, defaultHold
	if d, ok := in.duration(time.Millisecond, longest, "idle", "idleMs"); ok {
		idle = d
	}
	if d, ok := in.duration(0, longest, "max_hold", "maxHoldMs"); ok {
		hold = d
	}
	in.finish(nil)
	return idle, hold
}

// binding reads which queue the tools of an entry are bound to.
func (s *section) binding() string {
	name := s.text(queueName, "queue")
	if name == "" {
		name = toolqueue.Default
	}
	line := s.line
	if pair, ok := s.given("queue"); ok {
		line = pair.Line
	}
	s.refer(line, s.key+".queue", name)
	return name
}

// toolBindings reads the queues of single tools.
func (s *section) toolBindings() map[string]string {
	out := s.table(toolName, queueName, "toolQueues")
	pair, ok := s.given("toolQueues")
	if !ok {
		return out
	}
	for _, p := range pair.Value.Pairs {
		if queue, ok := out[p.Key]; ok {
			s.refer(p.Line, s.sub("toolQueues")+"."+shownName(p.Key), queue)
		}
	}
	return out
}

func (s *section) refer(line int, key, queue string) {
	s.merge.refs = append(s.merge.refs, reference{where: s.where(line), key: key, queue: queue})
}
