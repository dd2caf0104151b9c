package store

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

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
