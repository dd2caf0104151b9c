package store

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// ErrStale is returned by Apply and PutSession if the row has changed since the change was
// made from it: read it again, decide again.
var ErrStale = errors.New("the row changed in the meantime")

// Store keeps everything that must survive the process.
type Store interface {
	Writer
	Reader
	// Info describes the store and its guarantees.
	Info() Info
	// Close waits for running verbs and closes the store.
	Close() error
}

// Writer holds the verbs that change something. All are safe for concurrent use.
type Writer interface {
	TaskWriter
	AgentWriter
	SessionWriter
	ScheduleWriter
	UsageWriter
	AuditWriter
	DirectorWriter
	JournalWriter
}

// Reader holds the reads. They see every write acknowledged before they started.
type Reader interface {
	TaskReader
	AgentReader
	SessionReader
	ScheduleReader
	UsageReader
	AuditReader
	DirectorReader
	JournalReader
}

// Shared is a store that several directors use.
type Shared interface {
	Store
	// Time is the server's time, to the millisecond. All directors use it, so that leases
	// mean the same to all.
	Time(ctx context.Context) (time.Time, error)
	// Changed is signalled when another process may have changed something; one signal
	// stands for any number of changes. It is a hint: signals may be missed, so poll as
	// well.
	Changed() <-chan struct{}
	// Others returns journal entries of other processes with a Seq above after, oldest
	// first, and the Seq up to which that is complete: the after of the next call. It reads
	// at most limit entries.
	Others(ctx context.Context, after int64, limit int) (entries []signalbox.Entry, through int64, err error)
	// Generation increases when the server turns out to have lost acknowledged data.
	// Numbers given before are never given again, so no earlier fence is accepted; but an
	// agent may be running a task that the store no longer knows.
	Generation() int64
}

var release = regexp.MustCompile(`^v?(\d+)\.(\d+)\.\d+$`)

// SameMinor reports whether two versions may share one store: releases of the same minor
// version. Versions that are not releases ("dev", a commit) are not compared.
func SameMinor(a, b string) bool {
	x, y := release.FindStringSubmatch(a), release.FindStringSubmatch(b)
	return x == nil || y == nil || (number(x[1]) == number(y[1]) && number(x[2]) == number(y[2]))
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1 // overflow: equal only to another overflow
	}
	return n
}
