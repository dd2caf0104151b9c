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

// Rules that all stores share, although they keep their rows differently.

// Matches reports whether the query selects an ended task.
func (q *HistoryQuery) Matches(t *signalbox.Task) bool {
	return among(q.State, t.State) && among(q.Reason, t.Reason) && among(q.Agent, t.Agent) && among(q.Queue, t.Queue) &&
		among(q.Source, t.Source) && among(q.SourceJob, t.SourceJob) && among(q.SessionID, t.SessionID) &&
		among(q.Mode, t.Mode) && among(q.Tool, t.Tool) &&
		(q.Since.IsZero() || !t.EndedAt.Before(q.Since)) && (q.Until.IsZero() || t.EndedAt.Before(q.Until)) &&
		(q.Text == "" || strings.Contains(strings.ToLower(t.Preview), strings.ToLower(q.Text)))
}

// Matches reports whether the query selects a session.
func (q *SessionQuery) Matches(s *signalbox.Session) bool {
	return among(q.Agent, s.Agent) && among(q.Owner, s.Owner) && among(q.Source, s.Source) && among(q.State, s.State) &&
		(!q.Current || s.Current)
}

// Matches reports whether the query selects a row of the audit log.
func (q *AuditQuery) Matches(a *signalbox.Audit) bool {
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

// Cursor encodes the position, for the request of the next page.
func (p SessionCursor) Cursor() string { return fmt.Sprintf("%d_%s", p.Used, p.ID) }

// ParseSessionCursor parses a cursor; "" is the position before all.
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

// Replay is the result of a submission whose idempotency key is known.
func Replay(known, t *signalbox.Task) (Submitted, error) {
	if known.IdempotencyHash != t.IdempotencyHash {
		return Submitted{}, signalbox.Errorf(signalbox.CodeIdempotency,
			"the idempotency key was used with another body, for task %s: use a new key for a new request", known.ID)
	}
	return Submitted{Task: *known, Replayed: true}, nil
}

// SameAgent reports whether two rows of an agent are equal.
func SameAgent(a, b *signalbox.Agent) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.URL == b.URL && a.Slots == b.Slots && a.Fencing == b.Fencing && a.Proof == b.Proof &&
		a.Source == b.Source && bytes.Equal(a.SealedToken, b.SealedToken) && a.WorkDir == b.WorkDir && a.Version == b.Version &&
		a.Account == b.Account
}

// ParseCursor parses the cursor of a page of history: the end time of its last task, in Unix milliseconds,
// and its Seq. "" is the position before the newest end. An invalid cursor is refused with CodeValidation.
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

// Cursor is a position in a queue's order; the zero Cursor is before all.
type Cursor struct {
	OrderKey int64
	Place    int64
}

// CursorOf returns the position of t.
func CursorOf(t *signalbox.Task) Cursor { return Cursor{OrderKey: t.OrderKey(), Place: t.Place} }

// Before reports whether c is before d.
func (c Cursor) Before(d Cursor) bool {
	return c.OrderKey < d.OrderKey || (c.OrderKey == d.OrderKey && c.Place < d.Place)
}

// JournalWriter writes to the journal.
type JournalWriter interface {
	// Note writes a journal entry that belongs to no change, for example that an agent went down.
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

// Followed announces in the context of a verb that another verb follows, from a goroutine that queued wakes.
// A store that commits verbs together calls queued as soon as the verb is in its inbox, and gives the other
// verb a moment to share the commit. The other verb runs after this one, and neither is answered before both
// are durable. Other stores do not call queued.
func Followed(ctx context.Context, queued func()) context.Context {
	return context.WithValue(ctx, followedKey{}, queued)
}

// Follower returns what was passed to Followed; nil if it was not called.
func Follower(ctx context.Context) (queued func()) {
	queued, _ = ctx.Value(followedKey{}).(func())
	return queued
}
