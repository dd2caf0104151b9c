package engine

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// scanPage is how many waiting tasks a scan reads at once.
	scanPage = 1000
	// callCost is what one read of the store counts at the least, in rows.
	callCost = 10
)

// Scan goes through tasks: those in flight in the order of their claims, waiting
// ones in the order of their lines, ended ones newest first. It can go on from each
// place at which it was.
type Scan struct {
	Takes  func(*signalbox.Task) bool // which tasks are wanted
	Could  func(signalbox.State) bool // whether one in that state may be
	Queues []string                   // whose waiting tasks, in this order; "" is all of them
	Ended  store.HistoryQuery         // what of it the store can decide of ended ones
	Rows   int                        // that may be looked at
	Step   func() int                 // rows of ended ones that are best read at once: it goes on only where a read has ended

	At  Place // of the row that was looked at last
	Cut bool  // there were more rows than may be looked at
}

// The phases of a scan, in order.
const (
	PhaseRunning = "running"
	PhaseWaiting = "waiting"
	PhaseEnded   = "ended"
)

// Place is a place in a scan; opaque to callers. The zero place is its beginning.
type Place struct {
	Phase  string `json:"p"`
	Fence  int64  `json:"f,omitempty"` // running
	Queue  string `json:"q,omitempty"` // waiting: one of Queues
	N      int    `json:"m,omitempty"` // waiting: how many of that have passed
	Key    int64  `json:"k,omitempty"` // waiting: store.Cursor
	Place  int64  `json:"l,omitempty"`
	Before string `json:"b,omitempty"` // ended: cursor of the store
	// What the pages before have counted.
	Total       int  `json:"n"`
	Approximate bool `json:"a,omitempty"`
}

func (p Place) String() string {
	data, _ := json.Marshal(p) // numbers and strings always marshal
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParsePlace reads the place of one of these queues; ok is false where it is none.
func ParsePlace(s string, queues ...string) (p Place, ok bool) {
	if s == "" {
		return p, true
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	ok = err == nil && p.String() == s && p.Total >= 0 && p.N >= 0 && slices.Contains([]string{PhaseRunning, PhaseWaiting, PhaseEnded}, p.Phase) &&
		(p.Phase != PhaseWaiting || slices.Contains(queues, p.Queue))
	return p, ok
}

// Scan scans from a place on until take wants no more.
func (e *Engine) Scan(ctx context.Context, s *Scan, from Place, take func(t *signalbox.Task, at Place) (more bool)) error {
	phases := []struct {
		name   string
		states []signalbox.State
		run    func(context.Context, store.Reader, Place, taker) (bool, error)
	}{
		{PhaseRunning, []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling}, s.running},
		{PhaseWaiting, []signalbox.State{signalbox.Pending}, s.waiting},
		{PhaseEnded, []signalbox.State{signalbox.Completed, signalbox.Failed, signalbox.Cancelled, signalbox.Timeout}, s.ended},
	}
	for _, phase := range phases {
		if from.Phase != "" && from.Phase != phase.name {
			continue // passed already
		}
		s.At = from
		s.At.Phase = phase.name
		from = Place{}
		if !slices.ContainsFunc(phase.states, s.Could) {
			continue
		}
		if more, err := phase.run(ctx, e.Read(), s.At, take); err != nil || !more {
			return err
		}
	}
	return nil
}

type taker func(t *signalbox.Task, at Place) (more bool)

// look hands a row on if it is wanted.
func (s *Scan) look(t *signalbox.Task, at Place, take taker) (more bool) {
	s.Rows, s.At = s.Rows-1, at
	return !s.Takes(t) || take(t, at)
}

func (s *Scan) running(ctx context.Context, from store.Reader, after Place, take taker) (bool, error) {
	tasks, err := from.InFlight(ctx)
	if err != nil {
		return false, err
	}
	slices.SortFunc(tasks, func(a, b signalbox.Task) int { return cmp.Compare(a.Fence, b.Fence) })
	for i := range tasks {
		if t := &tasks[i]; t.Fence > after.Fence && !s.look(t, Place{Phase: PhaseRunning, Fence: t.Fence}, take) {
			return false, nil
		}
	}
	return true, nil
}

func (s *Scan) waiting(ctx context.Context, from store.Reader, at Place, take taker) (bool, error) {
	for i := max(0, slices.Index(s.Queues, at.Queue)); i < len(s.Queues); i++ {
		if at.Queue != s.Queues[i] {
			at = Place{Phase: PhaseWaiting, Queue: s.Queues[i]}
		}
		for n := scanPage; n == scanPage; {
			if s.Rows <= 0 {
				s.Cut = true
				return false, nil
			}
			tasks, err := from.Waiting(ctx, at.Queue, store.Cursor{OrderKey: at.Key, Place: at.Place}, scanPage)
			if err != nil {
				return false, err
			}
			for i := range tasks {
				after := store.CursorOf(&tasks[i])
				at.Key, at.Place, at.N = after.OrderKey, after.Place, at.N+1
				if !s.look(&tasks[i], at, take) {
					return false, nil
				}
			}
			n = len(tasks)
		}
	}
	return true, nil
}

func (s *Scan) ended(ctx context.Context, from store.Reader, at Place, take taker) (bool, error) {
	q := s.Ended
	q.Before = at.Before
	for {
		if s.Rows <= 0 {
			s.Cut = true
			return false, nil
		}
		q.Limit = min(max(s.Step(), 1), scanPage)
		page, err := from.History(ctx, q)
		if err != nil {
			return false, err
		}
		for i := range page.Tasks { // the last of them is where another page goes on
			if !s.look(&page.Tasks[i], Place{Phase: PhaseEnded, Before: page.Next}, take) {
				return false, nil
			}
		}
		if page.Next == "" {
			return true, nil
		}
		s.Rows -= max(0, callCost-len(page.Tasks))
		q.Before = page.Next
		s.At = Place{Phase: PhaseEnded, Before: page.Next}
	}
}
