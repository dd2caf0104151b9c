package verbs

import (
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// Bounds on the time between two attempts to reach a server.
const (
	retryFirst = 5 * time.Millisecond
	retryLast  = 250 * time.Millisecond
)

// retry runs the verbs of the batch again, which was not stored because of an
// error, until they are stored or cannot be.
func (w *writer) retry(err error) {
	deadline := time.Now().Add(w.store.opts.Patience)
	for wait := retryFirst; err != nil; {
		w.undraft()
		switch {
		case errors.Is(err, ErrUnknown):
			if err = w.resolve(); err == nil {
				return
			}
		case errors.Is(err, errLost):
			w.set.forget()
			w.among.unlock()
			err = w.beginAnew()
		}
		w.set.forget()
		if err != errMovedUnderLock { //nolint:errorlint // our own sign, never wrapped
			w.among.unlock()
		}
		if errors.Is(err, ErrValue) && len(w.batch.Jobs) > 1 {
			w.oneByOne()
			return
		}
		if err != nil && (!again(err) || time.Now().After(deadline)) {
			w.fail(err)
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeUnavailable {
			wait = pause(wait)
		}
		err = w.attempt()
	}
}

// oneByOne runs the verbs of the batch each in a batch of its own, and waits for
// it.
func (w *writer) oneByOne() {
	jobs, p := w.batch.Jobs, &w.alone.pipeline
	stage := p.stage
	p.stage = redone
	for n, j := range jobs {
		j.Alone = true // nobody joins it
		w.batch.Jobs = jobs[n : n+1 : n+1]
		w.runBatch()
	}
	w.batch.Jobs, p.stage = jobs, stage
}

// resolve asks what became of a batch whose commit had no answer, until the
// server says it. It returns nil if the batch is stored, ErrMoved if it is not
// and can be done again. A caller who does not want to wait is told that
// nobody knows (group.Unsure).
func (w *writer) resolve() error {
	deadline := time.Now().Add(w.store.opts.Patience)
	w.store.log.Warn("the answer to a commit was lost: asking the server what became of it", "verbs", len(w.batch.Jobs))
	for wait := retryFirst; ; {
		stored, err := w.committed()
		switch {
		case err == nil && stored:
			w.stored()
			return nil
		case err == nil:
			return ErrMoved
		case time.Now().After(deadline):
			return group.Unsure(err)
		}
		wait = pause(wait)
	}
}

func (w *writer) committed() (bool, error) {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.shared.Committed(ctx, w.store.opts.Writer, w.number)
}

func pause(wait time.Duration) time.Duration {
	time.Sleep(wait)
	return min(2*wait, retryLast)
}

// fail tells the callers that their batch is not stored.
func (w *writer) fail(err error) {
	w.among.unlock()
	w.store.log.Error("a batch was not stored", "verbs", len(w.batch.Jobs), "error", err)
	w.batch.Fail(refusal(err))
}

// again reports whether a batch can come to be stored at another attempt.
func again(err error) bool {
	return wasOvertaken(err) || signalbox.CodeOf(err) == signalbox.CodeUnavailable
}

func wasOvertaken(err error) bool {
	return errors.Is(err, ErrMoved) || errors.Is(err, ErrTaken) || errors.Is(err, errLost) ||
		errors.Is(err, errMovedUnderLock) || errors.Is(err, errPrevFailed)
}

// refusal is the answer to those whose batch was not stored.
func refusal(err error) error {
	var own *signalbox.Error
	switch {
	case wasOvertaken(err):
		return &signalbox.Error{Code: signalbox.CodeStoreFailed, Err: err,
			Message: "nothing was stored: the store changes faster than this process can follow; try again"}
	case errors.As(err, &own):
		return err
	}
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "nothing was stored: the store refused the write", Err: err}
}
