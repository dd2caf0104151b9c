package verbs

import (
	"time"

	"github.com/signalbox-ai/signalbox/internal/store/group"
)

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
		wait = w.pause(wait)
	}
}

func (w *writer) committed() (bool, error) {
	ctx, cancel := w.call()
	defer cancel()
	return w.store.backend.Committed(ctx, w.store.opts.Writer, w.number)
}
