package verbs

import (
	"errors"

	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// alone is the mode where no other process has written lately. What the set
// knows is taken to be what the backend has: a Commit is refused if it is not.
//
// Where many callers are around, batches are pipelined: while one is in flight
// the next is made ready. Its verbs run over the set as it will be when the
// first is stored, and verbs that come join it until then. So the backend and
// the process work at the same time. Nobody is answered before their own batch
// is stored.
//
// Callers are in two batches then, each half as large, and a batch has a fixed
// price: so it is done only where halves are large.
//
// If the first one fails, the set is forgotten, and the other begins anew when
// the first one's fate is settled.
type alone struct {
	*writer
	pipeline pipeline
}

// pipeline holds the batch before the one at hand.
type pipeline struct {
	stage     stage
	batch     group.Batch[verb]
	delta     *Delta
	committed chan error // capacity 1: the answer to the commit in flight
}

// stage is what has become of the batch in the pipeline.
type stage int

const (
	empty    stage = iota
	inFlight       // its commit has no answer yet
	redone         // it failed, and is done again before what stands on it
	settled        // its callers are to be told
)

// manyVerbs is from how many verbs on a half is large; tests lower it.
const manyVerbs = 256

// errPrevFailed says that a batch stood on another one that was not stored.
var errPrevFailed = errors.New("the batch before this one was not stored")

func (m *alone) plan() {}

func (m *alone) begin() error {
	m.set.ahead = readAhead
	return nil
}

func (m *alone) load() error {
	if err := m.drain(); err != nil {
		return err
	}
	m.ack()
	m.undraft()
	l, err := m.fetch(m.store.backend.Load, m.want())
	if err != nil {
		return err
	}
	return m.merge(l)
}

// await waits until the batch in flight is stored, or more verbs came to the
// one at hand.
func (m *alone) await() (more bool, err error) {
	for m.pipeline.stage == inFlight {
		if !m.set.wrote || m.batch.Full() {
			return false, m.drain()
		}
		select {
		case err := <-m.pipeline.committed:
			return false, m.finish(err)
		case <-m.store.inbox.Sign():
			if m.joined() {
				return true, nil
			}
			if m.store.inbox.Len() > 0 { // one that shares no batch with others
				return false, m.drain()
			}
		}
	}
	return false, nil
}

func (m *alone) settle() error {
	if !m.compared {
		if err := m.load(); err != nil {
			return err
		}
	}
	m.ack()
	m.set.clean()
	m.writer.finished()
	return nil
}

func (m *alone) commit() error {
	d := m.seal(false)
	if m.canPipeline() {
		m.pipe(d)
		return nil
	}
	m.ack()
	return m.send(d)
}

func (m *alone) finished() {}

// canPipeline reports whether the next batch is made ready while this one is in
// flight.
func (m *alone) canPipeline() bool {
	return m.pipeline.stage != redone && m.callers-len(m.batch.Jobs) >= m.store.opts.many
}

// pipe sends the batch, and makes room for the next. Only then are those told
// whose batch is stored: the backend does not wait for that.
func (m *alone) pipe(d *Delta) {
	p := &m.pipeline
	go func() {
		ctx, cancel := m.call()
		defer cancel()
		p.committed <- m.store.backend.Commit(ctx, d)
	}()
	m.ack()
	p.stage, p.delta = inFlight, d
	p.batch, m.batch = m.batch, p.batch
}

// drain waits for the batch in flight, if there is one.
func (m *alone) drain() error {
	if m.pipeline.stage != inFlight {
		return nil
	}
	return m.finish(<-m.pipeline.committed)
}

// finish notes that the commit in flight has its answer. A batch that failed is
// done again first, and whatever stood on it has to begin anew: errPrevFailed.
func (m *alone) finish(err error) error {
	p := &m.pipeline
	if err == nil {
		p.stage = settled
		m.stored()
		return nil
	}
	p.stage = redone
	p.batch, m.batch = m.batch, p.batch
	m.retry(m.failed(p.delta, err))
	p.batch, m.batch = m.batch, p.batch
	m.mode.plan() // it may be another one by now
	p.stage = settled
	m.ack()
	return errPrevFailed
}

// ack answers the callers of the batch in the pipeline once it is settled.
func (m *alone) ack() {
	p := &m.pipeline
	if p.stage != settled {
		return
	}
	p.stage = empty
	m.callers = len(p.batch.Jobs) + len(m.batch.Jobs) + m.store.inbox.Len()
	p.batch.Answer()
}
