package store

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// ErrStale is returned by Apply and PutSession when the row is no longer the
// one that the change was made from: read it again, decide again.
var ErrStale = errors.New("the row changed in the meantime")

// Store keeps everything that must outlive the process.
type Store interface {
	Writer
	Reader
	// Info says what the store is and what it promises.
	Info() Info
	// Close waits for running verbs and lets go of the store.
	Close() error
}

// Writer holds the verbs that change something. All are safe for concurrent
// use.
type Writer interface {
	TaskWriter
	AgentWriter
	SessionWriter
	ScheduleWriter
	AuditWriter
	DirectorWriter
	JournalWriter
}

// Reader holds the reads. They see every write that was acknowledged before
// they began.
type Reader interface {
	TaskReader
	AgentReader
	SessionReader
	ScheduleReader
	AuditReader
	DirectorReader
	JournalReader
}

// Shared is what a store has beyond Store where several directors use it.
type Shared interface {
	Store
	// Time is the time by the server's clock, to the millisecond. All directors
	// go by it, so that leases mean the same to all.
	Time(ctx context.Context) (time.Time, error)
	// Changed gets a sign, which stands for any number of changes, when
	// another process may have changed something. It is a hint: signs may be
	// missed, and who needs to know looks now and then all the same.
	Changed() <-chan struct{}
	// Others returns journal entries with a Seq above after that other
	// processes wrote, oldest first, and up to which Seq that is all there is:
	// the after of the next call. At most limit entries are looked at.
	Others(ctx context.Context, after int64, limit int) (entries []signalbox.Entry, through int64, err error)
	// Generation grows when the server turns out to have lost what it had
	// acknowledged. Numbers given before are never given again, so no fence of
	// before is accepted; but an agent may be at work of which the store knows
	// nothing any more.
	Generation() int64
}

var release = regexp.MustCompile(`^v?(\d+)\.(\d+)\.\d+$`)

// SameMinor reports whether two versions may run side by side over one store:
// those of one minor. What is no release ("dev", a commit) is compared with
// nothing: who builds it knows what it is.
func SameMinor(a, b string) bool {
	x, y := release.FindStringSubmatch(a), release.FindStringSubmatch(b)
	return x == nil || y == nil || (number(x[1]) == number(y[1]) && number(x[2]) == number(y[2]))
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1 // too great for an int: equal only to another such
	}
	return n
}
