package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// writeError is the error of a write that the database refused. If it refused only a value, the verbs of the
// batch are retried one by one.
func writeError(err error) error {
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
		err = errors.Join(verbs.ErrValue, err)
	case sqlite.ResultConstraint, sqlite.ResultMismatch:
		err = errors.Join(verbs.ErrValue, err)
	case sqlite.ResultIOErr:
		message = "nothing was stored: the disk reports an error"
	}
	return &signalbox.Error{Code: code, Message: message, Err: err}
}

// commitUnknown is the error of a commit with an unknown outcome.
func commitUnknown(err error) error {
	return &signalbox.Error{
		Code: signalbox.CodeStoreFailed, Err: err,
		Message: "the database failed on a commit, and whether this was stored is not known; the store takes no more writes",
	}
}

// readError is the error of a failed read.
func readError(err error) error {
	if _, ok := errors.AsType[*signalbox.Error](err); ok {
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

// isRefusal reports whether err is an answer rather than a fault of the database.
func isRefusal(err error) bool {
	var own *signalbox.Error
	return errors.As(err, &own)
}

// isFatal reports whether it is unknown what is stored after err.
func isFatal(err error, onCommit bool) bool {
	return isCorrupt(err) || (onCommit && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultIOErr)
}

// usable refuses all writes after a fatal error.
func (b *Backend) usable() error {
	if b.fatalErr != nil {
		return commitUnknown(b.fatalErr)
	}
	return nil
}

// failed is the error of a batch that was not stored.
func (b *Backend) failed(err error, onCommit bool) error {
	if isFatal(err, onCommit) {
		b.fail(err)
	}
	switch {
	case b.fatalErr != nil:
		return commitUnknown(b.fatalErr)
	case errors.Is(err, verbs.ErrTaken), isRefusal(err):
		return err
	}
	return writeError(err)
}

// fail calls Options.Fatal and refuses all later writes.
func (b *Backend) fail(err error) {
	if b.fatalErr != nil {
		return
	}
	b.fatalErr = err
	b.opts.Fatal(fmt.Errorf("%s: a commit failed and it is unknown what is stored, so the process ends and nothing of that commit is acknowledged; "+
		"check the disk, then start again: what was acknowledged before is there: %w", b.opts.Path, err))
}
