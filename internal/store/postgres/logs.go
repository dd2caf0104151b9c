package postgres

import (
	"slices"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// logged is a row of logs: the changes of a batch that may be stored, in progress, or never
// stored.
type logged struct {
	verbs.BatchID
	body []byte
}

// loadLogs adds the statement that answers Want.Since to x.
func loadLogs(x *exchange, since int64, l *verbs.Loaded) {
	var rows []logged
	x.ask(stLogs, func(r row) error {
		rows = append(rows, logged{verbs.BatchID{Writer: r.text(1), Number: r.int(2)}, r.bytes(0)})
		return nil
	}, number(since))
	x.then(func() error {
		l.Logs, l.Handed = logsBetween(rows, since, l.Moment), handedOnAt(rows, l.Moment)
		return nil
	})
}

// logsBetween returns the logs from one moment to a later one; none if one is missing. A log of a batch that
// was not stored leads to a moment that no stored batch has.
func logsBetween(rows []logged, since, to int64) (logs [][]byte) {
	for to > since {
		n := slices.IndexFunc(rows, func(r logged) bool { _, end := verbs.LogSpan(r.body); return end == to })
		if n < 0 || len(logs) == len(rows) {
			return nil
		}
		logs = append(logs, rows[n].body)
		to, _ = verbs.LogSpan(rows[n].body)
	}
	if to < since {
		return nil
	}
	slices.Reverse(logs)
	return logs
}

// handedOnAt returns the batch handed on at a moment, if any.
func handedOnAt(rows []logged, at int64) *verbs.Handed {
	for _, r := range rows {
		if from, _ := verbs.LogSpan(r.body); from == at && r.Writer != "" {
			return &verbs.Handed{BatchID: r.BatchID, Log: r.body}
		}
	}
	return nil
}

// logSpan is how far the moment moves on average within the batches whose logs are kept.
const logSpan = verbs.LogsKept << 15

// writeLog stores the log of a batch, and deletes the oldest ones and those of handed-on
// batches from its start or later, which will never be stored.
func writeLog(x *exchange, d *verbs.Delta) {
	x.do(stLogDrop, number(d.From.Moment))
	x.do(stLogInsert, number(d.To.Moment), d.Log, text(d.Writer), number(d.Number))
	x.do(stLogDelete, number(d.To.Moment-logSpan))
}
