package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// What stores that keep their rows in different ways decide alike.

// Takes reports whether the query chooses an ended task.
func (q *HistoryQuery) Takes(t *signalbox.Task) bool {
	return among(q.State, t.State) && among(q.Reason, t.Reason) && among(q.Agent, t.Agent) && among(q.Queue, t.Queue) &&
		among(q.Source, t.Source) && among(q.SourceJob, t.SourceJob) && among(q.SessionID, t.SessionID) &&
		among(q.Mode, t.Mode) && among(q.Tool, t.Tool) &&
		(q.Since.IsZero() || !t.EndedAt.Before(q.Since)) && (q.Until.IsZero() || t.EndedAt.Before(q.Until)) &&
		(q.Text == "" || strings.Contains(strings.ToLower(t.Preview), strings.ToLower(q.Text)))
}

// Takes reports whether the query chooses a session.
func (q *SessionQuery) Takes(s *signalbox.Session) bool {
	return among(q.Agent, s.Agent) && among(q.Owner, s.Owner) && among(q.Source, s.Source) && among(q.State, s.State) &&
		(!q.Current || s.Current)
}

// Takes reports whether the query chooses a row of the audit log.
func (q *AuditQuery) Takes(a *signalbox.Audit) bool {
	behind := a.Seq > q.After
	if q.Newest {
		behind = q.After == 0 || a.Seq < q.After
	}
	return behind && among(q.EventType, a.EventType) && among(q.Action, a.Action) && among(q.UserID, a.UserID) &&
		among(q.AgentName, a.AgentName) && among(q.Severity, a.Severity) && (q.Since.IsZero() || !a.At.Before(q.Since))
}

// among reports whether the value passes a filter; an empty one passes all.
func among[T ~string](filter, value T) bool { return filter == "" || filter == value }

// SessionCursor is a position in the list of sessions, last used first.
type SessionCursor struct {
	Used int64 // Unix milliseconds
	ID   string
}

// Cursor names the place to who asks for the page behind it.
func (p SessionCursor) Cursor() string { return fmt.Sprintf("%d_%s", p.Used, p.ID) }

// ParseSessionCursor reads a cursor; "" is the place before all.
func ParseSessionCursor(cursor string) (SessionCursor, error) {
	if cursor == "" {
		return SessionCursor{Used: math.MaxInt64}, nil
	}
	used, id, cut := strings.Cut(cursor, "_")
	ms, err := strconv.ParseInt(used, 10, 64)
	if !cut || err != nil {
		return SessionCursor{}, signalbox.Invalid("before", "%.100q is not the cursor of an earlier page", cursor)
	}
	return SessionCursor{ms, id}, nil
}

// Replay answers a submission whose idempotency key is that of a known task.
func Replay(known, t *signalbox.Task) (Submitted, error) {
	if known.IdempotencyHash != t.IdempotencyHash {
		return Submitted{}, signalbox.Errorf(signalbox.CodeIdempotency,
			"the idempotency key was used with another body, for task %s: use a new key for a new request", known.ID)
	}
	return Submitted{Task: *known, Replayed: true}, nil
}

// SameAgent reports whether two rows say the same of an agent.
func SameAgent(a, b *signalbox.Agent) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.URL == b.URL && a.Slots == b.Slots && a.Fencing == b.Fencing && a.Proof == b.Proof &&
		a.Source == b.Source && bytes.Equal(a.SealedToken, b.SealedToken) && a.WorkDir == b.WorkDir && a.Version == b.Version &&
		a.Account == b.Account
}

// ParseCursor reads the cursor of a page of history: when the last task on it
// ended, in Unix milliseconds, and its Seq. An empty one stands behind all. What
// is no cursor is refused with CodeValidation.
func ParseCursor(cursor string) (endedMS, seq int64, err error) {
	if cursor == "" {
		return math.MaxInt64, math.MaxInt64, nil
	}
	var rest string
	if n, _ := fmt.Sscanf(cursor, "%d-%d%s", &endedMS, &seq, &rest); n != 2 {
		return 0, 0, signalbox.Invalid("before", "%.100q is not the cursor of an earlier page", cursor)
	}
	return endedMS, seq, nil
}

// Cursor is a place in a queue's order; the zero Cursor is before all.
type Cursor struct {
	OrderKey int64
	Place    int64
}

// CursorOf returns the place of t.
func CursorOf(t *signalbox.Task) Cursor { return Cursor{OrderKey: t.OrderKey(), Place: t.Place} }

// Before reports whether c stands before d.
func (c Cursor) Before(d Cursor) bool {
	return c.OrderKey < d.OrderKey || (c.OrderKey == d.OrderKey && c.Place < d.Place)
}

// JournalWriter writes to the journal.
type JournalWriter interface {
	// Note writes a journal entry that belongs to no change, such as an agent
	// that went down.
	Note(ctx context.Context, entry signalbox.Entry) error
}

// JournalReader reads the journal.
type JournalReader interface {
	// Journal returns entries with a Seq above after, oldest first, at most
	// limit.
	Journal(ctx context.Context, after int64, limit int) ([]signalbox.Entry, error)

	// JournalRange returns the oldest and newest Seq that Journal can return;
	// both 0 if the journal is empty.
	JournalRange(ctx context.Context) (oldest, newest int64, err error)
}

type followedKey struct{}

// Followed says of the verb that is called with the context that another one
// follows, of whoever queued wakes: a store that commits verbs together calls it
// as soon as the verb waits for its turn, and gives the other one a moment to
// share the commit. The other one runs behind it, and neither is answered before
// both are durable. Other stores do not call it.
func Followed(ctx context.Context, queued func()) context.Context {
	return context.WithValue(ctx, followedKey{}, queued)
}

// Follower is what Followed was given, nil for nothing.
func Follower(ctx context.Context) (queued func()) {
	queued, _ = ctx.Value(followedKey{}).(func())
	return queued
}
