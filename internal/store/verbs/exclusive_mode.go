package verbs

import (
	"errors"

	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// exclusiveMode is the mode while no other process writes. The set is taken to match the
// backend: otherwise Commit refuses.
//
// Under load batches are pipelined: while one is in flight, the next is prepared over the
// predicted state, and new verbs join it until the commit returns. So backend and process
// work at the same time. A caller is answered only after its own batch is stored.
// Pipelining splits the callers into two batches, and a batch has a fixed cost, so it is
// done only if both halves are large.
//
// If the commit in flight fails, the set is discarded, and the next batch starts again once
// the first one's outcome is known.
type exclusiveMode struct {
	*writer
	pipeline pipeline
}

// pipeline holds the batch before the current one.
type pipeline struct {
	stage     stage
	batch     group.Batch[verb]
	delta     *Delta
	committed chan error // capacity 1: the result of the commit in flight
}

// stage is the state of the batch in the pipeline.
type stage int

const (
	empty    stage = iota
	inFlight       // its commit has not returned
	redone         // it failed, and is retried before the batch built on it
	settled        // its callers are to be answered
)

// manyVerbs is the number of verbs from which a half counts as large; tests lower it.
const manyVerbs = 256

// errPrevFailed: the batch that this one was built on was not stored.
var errPrevFailed = errors.New("the batch before this one was not stored")

func (m *exclusiveMode) plan() {}

func (m *exclusiveMode) begin() error {
	m.set.prefetch = prefetchReady
	return nil
}

func (m *exclusiveMode) load() error {
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

// await waits until the batch in flight is stored, or more verbs have joined the current
// one.
func (m *exclusiveMode) await() (more bool, err error) {
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
			if m.store.inbox.Len() > 0 { // a verb that must be alone in its batch
				return false, m.drain()
			}
		}
	}
	return false, nil
}

func (m *exclusiveMode) settle() error {
	if !m.compared {
		if err := m.load(); err != nil {
			return err
		}
	}
	m.ack()
	m.set.clearChanges()
	m.writer.finished()
	return nil
}

func (m *exclusiveMode) commit() error {
	d := m.seal(false)
	if m.canPipeline() {
		m.pipe(d)
		return nil
	}
	m.ack()
	return m.send(d)
}

func (m *exclusiveMode) finished() {}

// canPipeline reports whether to prepare the next batch while this one is in flight.
func (m *exclusiveMode) canPipeline() bool {
	return m.pipeline.stage != redone && m.callers-len(m.batch.Jobs) >= m.store.opts.many
}

// pipe sends the batch. Callers of the previous batch are answered only after that, so that
// the backend does not wait for it.
func (m *exclusiveMode) pipe(d *Delta) {
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

// drain waits for the batch in flight, if any.
func (m *exclusiveMode) drain() error {
	if m.pipeline.stage != inFlight {
		return nil
	}
	return m.finish(<-m.pipeline.committed)
}

// finish handles the result of the commit in flight. A failed batch is retried first, and
// the batch built on it must start again: errPrevFailed.
func (m *exclusiveMode) finish(err error) error {
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
	m.mode.plan() // the mode may have changed
	p.stage = settled
	m.ack()
	return errPrevFailed
}

// ack answers the callers of the batch in the pipeline once it is settled.
func (m *exclusiveMode) ack() {
	p := &m.pipeline
	if p.stage != settled {
		return
	}
	p.stage = empty
	m.callers = len(p.batch.Jobs) + len(m.batch.Jobs) + m.store.inbox.Len()
	p.batch.Answer()
}
