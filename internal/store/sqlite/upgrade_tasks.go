package sqlite

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// oldTasks reads tasks with a column for each value.
const oldTasks = `SELECT seq, id, state, rev, queue, ready, place, session_id, not_before_ms, wait_until_ms,
	ended_ms, agent, reason, message, agent_url, slot, fence, task_id, dispatched_ms, started_ms, attempts, claims,
	no_answers, last_error, has_env, cancel_requested, cancelled_by, limit_name, priority, bias_ns, enqueued_ms,
	session_mode, on_lost, max_attempts, retry_of, source, source_job, preview, idempotency_key, idempotency_hash,
	created_ms, parent_id, extra, stop_reason, stop_message, request_size, result_size FROM old_tasks ORDER BY seq`

func scanOldTask(q *query) (*signalbox.Task, error) {
	state, known := stateOf(q.intAt(2))
	if !known {
		return nil, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the row of task %q holds the unknown state %d: the file is damaged, or was changed by another program", q.textAt(1), q.intAt(2))
	}
	t := &signalbox.Task{
		Seq: q.intAt(0), ID: q.textAt(1), State: state, Rev: q.intAt(3), Queue: q.textAt(4), Ready: q.boolAt(5),
		Place: q.intAt(6), SessionID: q.textAt(7), NotBefore: q.timeAt(8), WaitUntil: q.timeAt(9), EndedAt: q.timeAt(10),
		Agent: q.textAt(11), Reason: signalbox.Reason(q.textAt(12)), Message: q.textAt(13), AgentURL: q.textAt(14),
		Slot: int(q.intAt(15)), Fence: q.intAt(16), TaskID: q.textAt(17), DispatchedAt: q.timeAt(18), StartedAt: q.timeAt(19),
		Attempts: int(q.intAt(20)), Claims: int(q.intAt(21)), NoAnswers: int(q.intAt(22)), LastError: q.textAt(23),
		HasEnv: q.boolAt(24), CancelRequested: q.boolAt(25), CancelledBy: q.textAt(26), Limit: q.textAt(27),
		Priority: int(q.intAt(28)), Bias: time.Duration(q.intAt(29)), EnqueuedAt: q.timeAt(30),
		SessionMode: signalbox.SessionMode(q.textAt(31)), OnLost: signalbox.OnLost(q.textAt(32)), MaxAttempts: int(q.intAt(33)),
		RetryOf: q.textAt(34), Source: signalbox.Source(q.textAt(35)), SourceJob: q.textAt(36), Preview: q.textAt(37),
		IdempotencyKey: q.textAt(38), IdempotencyHash: q.textAt(39), CreatedAt: q.timeAt(40),
		ParentID: q.textAt(41), StopReason: signalbox.Reason(q.textAt(43)), StopMessage: q.textAt(44),
		RequestSize: q.intAt(45), ResultSize: q.intAt(46),
	}
	return t, pack.ReadExtra(t, q.bytesAt(42))
}

func stateOf(number int64) (signalbox.State, bool) {
	for state, n := range stateNumbers {
		if n == number {
			return state, true
		}
	}
	return "", false
}

func (c *conn) upgradeTasks(ctx context.Context) error {
	biased := map[string]int64{}
	err := c.every(ctx, oldTasks, func(q *query) error {
		t, err := scanOldTask(q)
		if err != nil {
			return c.upgradeQuarantined(q.intAt(0), q.textAt(1), err)
		}
		if t.State == signalbox.Pending && t.Bias != 0 {
			biased[t.Queue]++
		}
		put := c.on(stTaskInsert)
		return c.bindTask(&put, t).run()
	})
	for queue, n := range biased {
		if err == nil {
			doc := verbs.BiasedDoc(queue, n)
			err = c.putDoc(&doc)
		}
	}
	return err
}

// upgradeQuarantined keeps an unreadable task as quarantined.
func (c *conn) upgradeQuarantined(seq int64, id string, why error) error {
	put := c.on(stTaskInsert)
	put.int(seq).exact(id).int(rowDamaged).exact("").null().int(0).int(0).null().null().null().null().null().null()
	if err := put.bytes(nil).run(); err != nil {
		return err
	}
	return c.quarantine(seq, id, why.Error())
}

// upgradeLarge converts a large value; a task with an unreadable one is quarantined.
func (c *conn) upgradeLarge(seq int64, wrong error, put func() error) error {
	if wrong == nil {
		return put()
	}
	q := c.on(stTaskBySeq)
	id := ""
	if q.int(seq); q.next() {
		id = q.textAt(1)
	}
	if err := q.end(); err != nil || id == "" {
		return err
	}
	return c.quarantine(seq, id, wrong.Error())
}

func (c *conn) upgradeRequests(ctx context.Context) error {
	return c.every(ctx, `SELECT seq, prompt, rest FROM old_requests ORDER BY seq`, func(q *query) error {
		r, err := pack.ReadRequest(q.textAt(1), q.bytesAt(2), nil)
		return c.upgradeLarge(q.intAt(0), err, func() error { return c.putRequest(q.intAt(0), &r) })
	})
}

func (c *conn) upgradeResults(ctx context.Context) error {
	return c.every(ctx, `SELECT seq, output, tail, rest FROM old_results ORDER BY seq`, func(q *query) error {
		r, err := pack.ReadResult(q.textAt(1), q.textAt(2), q.bytesAt(3))
		return c.upgradeLarge(q.intAt(0), err, func() error { return c.putResult(q.intAt(0), &r) })
	})
}

func (c *conn) upgradeStales(ctx context.Context) error {
	said, last := []signalbox.Stale(nil), int64(0)
	put := func() error {
		if len(said) == 0 {
			return nil
		}
		doc := verbs.StaleDoc(last, said)
		return c.putDoc(&doc)
	}
	err := c.every(ctx, `SELECT seq, fence, agent, task_id, at_ms, state, message, output, tail, rest FROM stales ORDER BY seq, fence`, func(q *query) error {
		if seq := q.intAt(0); seq != last {
			if err := put(); err != nil {
				return err
			}
			said, last = nil, seq
		}
		s := signalbox.Stale{
			Fence: q.intAt(1), Agent: q.textAt(2), TaskID: q.textAt(3), At: q.timeAt(4), State: q.textAt(5), Message: q.textAt(6),
		}
		var err error
		s.Result, err = pack.ReadResult(q.textAt(7), q.textAt(8), q.bytesAt(9))
		said = append(said, s)
		return err
	})
	if err != nil {
		return err
	}
	return put()
}
