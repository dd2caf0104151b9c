package verbs

import (
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/group"
)

const (
	// Bounds of the delay between attempts to reach a server.
	retryFirst = 5 * time.Millisecond
	retryLast  = 250 * time.Millisecond
)

// retry runs the verbs of a batch that failed again, until they are stored or cannot be.
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
			w.sharing.unlock()
			err = w.beginGeneration()
		}
		w.set.forget()
		if err != errMovedUnderLock { //nolint:errorlint // our own sentinel, never wrapped
			w.sharing.unlock()
		}
		if errors.Is(err, ErrValue) && len(w.batch.Jobs) > 1 {
			w.oneByOne()
			return
		}
		if err != nil && (!retryable(err) || time.Now().After(deadline)) {
			w.fail(err)
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeUnavailable {
			wait = backoff(wait)
		}
		err = w.attempt()
	}
}

// oneByOne runs each verb of the batch in a batch of its own.
func (w *writer) oneByOne() {
	jobs, p := w.batch.Jobs, &w.exclusive.pipeline
	stage := p.stage
	p.stage = redone
	for n, j := range jobs {
		j.Alone = true // no other verb joins it
		w.batch.Jobs = jobs[n : n+1 : n+1]
		w.runBatch()
	}
	w.batch.Jobs, p.stage = jobs, stage
}

// resolve asks the server whether a batch without an answer was stored, until it answers.
// It returns nil if the batch is stored, ErrMoved if it is not and can be retried. A caller
// that gives up waiting gets group.Unsure.
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
		wait = backoff(wait)
	}
}

func (w *writer) committed() (bool, error) {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.shared.Committed(ctx, w.store.opts.Writer, w.number)
}

func backoff(wait time.Duration) time.Duration {
	time.Sleep(wait)
	return min(2*wait, retryLast)
}

// fail answers the callers that their batch is not stored.
func (w *writer) fail(err error) {
	w.sharing.unlock()
	w.store.log.Error("a batch was not stored", "verbs", len(w.batch.Jobs), "error", err)
	w.batch.Fail(refusal(err))
}

// retryable reports whether another attempt may succeed.
func retryable(err error) bool {
	return wasOvertaken(err) || signalbox.CodeOf(err) == signalbox.CodeUnavailable
}

func wasOvertaken(err error) bool {
	return errors.Is(err, ErrMoved) || errors.Is(err, ErrTaken) || errors.Is(err, errLost) ||
		errors.Is(err, errMovedUnderLock) || errors.Is(err, errPrevFailed)
}

// refusal is the error for the callers of a failed batch.
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
