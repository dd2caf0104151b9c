package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

const (
	// scanPage is how many rows a scan reads at once.
	scanPage = 1000
	// minReadCost is the least cost of one read towards Scan.Budget, in rows.
	minReadCost = 10
)

// Scan iterates over tasks: tasks in flight by fence, waiting ones in queue order, ended
// ones newest first. It can be resumed at any cursor.
type Scan struct {
	Match    func(*signalbox.Task) bool // which tasks to return
	MayMatch func(signalbox.State) bool // whether a task in that state can match
	Queues   []string                   // whose waiting tasks, in this order; "" is all queues
	Ended    HistoryQuery               // filter that the store applies to ended tasks
	Budget   int                        // rows that may still be read
	PageSize func() int                 // ended rows to read at once; a scan of ended tasks resumes only after a whole page

	At        ScanCursor // cursor of the last row visited
	Truncated bool       // the budget ran out first
}

// The phases of a scan, in order.
const (
	PhaseRunning = "running"
	PhaseWaiting = "waiting"
	PhaseEnded   = "ended"
)

// ScanCursor is a position in a scan; opaque to callers. The zero cursor is the start.
type ScanCursor struct {
	Phase  string `json:"p"`
	Fence  int64  `json:"f,omitempty"` // running
	Queue  string `json:"q,omitempty"` // waiting: one of Scan.Queues
	N      int    `json:"m,omitempty"` // waiting: how many of that queue were visited
	Key    int64  `json:"k,omitempty"` // waiting: Cursor
	Place  int64  `json:"l,omitempty"`
	Before string `json:"b,omitempty"` // ended: cursor of the store
	// Counted by the caller on earlier pages.
	Total       int  `json:"n"`
	Approximate bool `json:"a,omitempty"`
}

func (p ScanCursor) String() string {
	data, _ := json.Marshal(p) // cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParseScanCursor parses a cursor of a scan over queues; "" is the start. ok is false if it
// is not valid.
func ParseScanCursor(s string, queues ...string) (p ScanCursor, ok bool) {
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

// Run calls take for each match from a cursor on, until take returns false.
func (s *Scan) Run(ctx context.Context, r Reader, from ScanCursor, take func(t *signalbox.Task, at ScanCursor) (more bool)) error {
	phases := []struct {
		name   string
		states []signalbox.State
		run    func(context.Context, Reader, ScanCursor, taker) (bool, error)
	}{
		{PhaseRunning, []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling}, s.running},
		{PhaseWaiting, []signalbox.State{signalbox.Pending, signalbox.Parked}, s.waiting},
		{PhaseEnded, []signalbox.State{signalbox.Completed, signalbox.Failed, signalbox.Cancelled, signalbox.Timeout}, s.ended},
	}
	for _, phase := range phases {
		if from.Phase != "" && from.Phase != phase.name {
			continue // already visited
		}
		s.At = from
		s.At.Phase = phase.name
		from = ScanCursor{}
		if !slices.ContainsFunc(phase.states, s.MayMatch) {
			continue
		}
		if more, err := phase.run(ctx, r, s.At, take); err != nil || !more {
			return err
		}
	}
	return nil
}

type taker func(t *signalbox.Task, at ScanCursor) (more bool)

// visit passes a row to take if it matches.
func (s *Scan) visit(t *signalbox.Task, at ScanCursor, take taker) (more bool) {
	s.Budget, s.At = s.Budget-1, at
	return !s.Match(t) || take(t, at)
}

func (s *Scan) running(ctx context.Context, from Reader, after ScanCursor, take taker) (bool, error) {
	tasks, err := from.InFlight(ctx)
	if err != nil {
		return false, err
	}
	slices.SortFunc(tasks, func(a, b signalbox.Task) int { return cmp.Compare(a.Fence, b.Fence) })
	for i := range tasks {
		if t := &tasks[i]; t.Fence > after.Fence && !s.visit(t, ScanCursor{Phase: PhaseRunning, Fence: t.Fence}, take) {
			return false, nil
		}
	}
	return true, nil
}

func (s *Scan) waiting(ctx context.Context, from Reader, at ScanCursor, take taker) (bool, error) {
	for i := max(0, slices.Index(s.Queues, at.Queue)); i < len(s.Queues); i++ {
		if at.Queue != s.Queues[i] {
			at = ScanCursor{Phase: PhaseWaiting, Queue: s.Queues[i]}
		}
		for n := scanPage; n == scanPage; {
			if s.Budget <= 0 {
				s.Truncated = true
				return false, nil
			}
			tasks, err := from.Waiting(ctx, at.Queue, Cursor{OrderKey: at.Key, Place: at.Place}, scanPage)
			if err != nil {
				return false, err
			}
			for i := range tasks {
				after := CursorOf(&tasks[i])
				at.Key, at.Place, at.N = after.OrderKey, after.Place, at.N+1
				if !s.visit(&tasks[i], at, take) {
					return false, nil
				}
			}
			n = len(tasks)
		}
	}
	return true, nil
}

func (s *Scan) ended(ctx context.Context, from Reader, at ScanCursor, take taker) (bool, error) {
	q := s.Ended
	q.Before = at.Before
	for {
		if s.Budget <= 0 {
			s.Truncated = true
			return false, nil
		}
		q.Limit = min(max(s.PageSize(), 1), scanPage)
		page, err := from.History(ctx, q)
		if err != nil {
			return false, err
		}
		for i := range page.Tasks { // the cursor of all of them is the start of the next page
			if !s.visit(&page.Tasks[i], ScanCursor{Phase: PhaseEnded, Before: page.Next}, take) {
				return false, nil
			}
		}
		if page.Next == "" {
			return true, nil
		}
		s.Budget -= max(0, minReadCost-len(page.Tasks))
		q.Before = page.Next
		s.At = ScanCursor{Phase: PhaseEnded, Before: page.Next}
	}
}
