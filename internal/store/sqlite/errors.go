package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// failed is the answer to a verb whose write did not happen.
func failed(err error) error {
	code, message := signalbox.CodeStoreFailed, "nothing was stored: the database refused the write"
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		code, message = signalbox.CodeStoreFull, "nothing was stored: the disk is full; make room and try again"
	case sqlite.ResultBusy, sqlite.ResultLocked:
		message = "nothing was stored: another program holds the database file; end it and try again"
	case sqlite.ResultReadOnly:
		message = "nothing was stored: the database file cannot be written; check its permissions"
	case sqlite.ResultTooBig:
		message = "nothing was stored: a value is too large for the database"
	case sqlite.ResultIOErr:
		message = "nothing was stored: the disk reports an error"
	}
	return &signalbox.Error{Code: code, Message: message, Err: err}
}

// unsure is the answer after a commit of which nobody knows how it ended.
func unsure(err error) error {
	return &signalbox.Error{
		Code: signalbox.CodeStoreFailed, Err: err,
		Message: "the database failed on a commit, and whether this was stored is not known; the store takes no more writes",
	}
}

// unread is the answer to a read that failed.
func unread(err error) error {
	var own *signalbox.Error
	if errors.As(err, &own) {
		return err
	}
	if isCorrupt(err) {
		return &signalbox.Error{Code: signalbox.CodeStoreCorrupt, Message: "the database file is damaged: run signalbox doctor", Err: err}
	}
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the database could not be read", Err: err}
}

func isCorrupt(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB
}

// isRefusal reports whether err is the verb's own answer and not a fault of
// the database.
func isRefusal(err error) bool {
	var own *signalbox.Error
	return errors.Is(err, store.ErrStale) || errors.As(err, &own)
}

// isLocal reports whether a fault concerns one verb alone, so that the others
// of its batch can go on.
func isLocal(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultConstraint, sqlite.ResultTooBig, sqlite.ResultMismatch:
		return true
	}
	return false
}

// isFatal reports whether nobody can say what is stored after err.
func isFatal(err error, onCommit bool) bool {
	return isCorrupt(err) || (onCommit && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultIOErr)
}

func unknownTask(id string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
}

// fatalMessage says what an operator must know after the store gave up.
func fatalMessage(path string, err error) error {
	return fmt.Errorf("%s: a commit failed and nobody can say what is stored, so the process ends and nothing of that commit is acknowledged; "+
		"check the disk, then start again: what was acknowledged before is there: %w", path, err)
}
