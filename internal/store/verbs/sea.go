package verbs

import (
	"errors"

	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// Where many callers are around, and the process is alone with its server, a
// batch is at sea while the next one is made ready: its verbs run over the set
// as it will be when the first has landed, and those who come join it until
// then. So the server and the process work at the same time. Nobody is answered
// before their own batch has landed.
//
// Callers are in two batches then, each half as large, and a batch has a fixed
// price: so it is done only where halves are large.
//
// If the first one sinks, the set is forgotten, and the other begins anew when
// the first one's fate is settled.

// sea is where a batch is whose commit has no answer yet.
type sea struct {
	out    bool
	batch  group.Batch[verb]
	delta  *Delta
	landed chan error // capacity 1
	ashore bool       // the batch has landed, and its callers are not told yet
}

// manyVerbs is from how many verbs on a half is large; tests lower it.
const manyVerbs = 256

// errSunk says that a batch stood on another one that was not stored.
var errSunk = errors.New("the batch before this one was not stored")

// depart settles the batch and returns what is to be sent.
func (w *writer) depart() *Delta {
	w.number++
	d := &w.deltas[w.number%2]
	w.set.delta(d, w.store.opts.Writer, w.number, w.crowd > 0)
	w.sent = d.To
	w.set.settled()
	return d
}

// sails reports whether a batch goes to sea: among others it is seen home under
// the lock.
func (w *writer) sails() bool {
	return w.crowd == 0 && !w.holding && !w.safe && w.company-len(w.batch.Jobs) >= w.store.opts.many
}

// sail sends the batch, and makes room for the next. Only then are those told
// whose batch has landed: the server does not wait for that.
func (w *writer) sail(d *Delta) {
	s := &w.sea
	go func() {
		ctx, cancel := w.call()
		defer cancel()
		s.landed <- w.store.backend.Commit(ctx, d)
	}()
	w.tell()
	s.out, s.delta = true, d
	s.batch, w.batch = w.batch, s.batch
}

// await waits until the batch at sea has landed, or reports that more verbs
// came to the one at hand.
func (w *writer) await() (more bool, err error) {
	for w.sea.out {
		if !w.set.wrote || w.batch.Full() {
			return false, w.land()
		}
		select {
		case err := <-w.sea.landed:
			return false, w.home(err)
		case <-w.store.inbox.Sign():
			if w.joined() {
				return true, nil
			}
			if w.store.inbox.Len() > 0 { // one that shares no batch with others
				return false, w.land()
			}
		}
	}
	return false, nil
}

// land waits for the batch at sea, if there is one.
func (w *writer) land() error {
	if !w.sea.out {
		return nil
	}
	return w.home(<-w.sea.landed)
}

// home notes that the batch at sea has landed. If it sank it is done again
// first, and whatever stood on it has to begin anew: errSunk.
func (w *writer) home(err error) error {
	s := &w.sea
	s.out = false
	if err == nil {
		w.stored()
		s.ashore = true
		return nil
	}
	s.batch, w.batch = w.batch, s.batch
	w.safe = true
	w.retry(w.failed(s.delta, err))
	w.safe = false
	s.batch, w.batch = w.batch, s.batch
	s.ashore = true
	w.tell()
	return errSunk
}

// tell answers the callers of the batch that was at sea, if any.
func (w *writer) tell() {
	s := &w.sea
	if !s.ashore {
		return
	}
	s.ashore = false
	w.company = len(s.batch.Jobs) + len(w.batch.Jobs) + w.store.inbox.Len()
	s.batch.Answer()
}
