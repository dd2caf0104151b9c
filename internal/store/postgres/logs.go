package postgres

import (
	"slices"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// logged is a row of logs: what a batch changed, which may be stored, about to
// be, or never come to be.
type logged struct {
	verbs.BatchID
	body []byte
}

// loadLogs adds to x what answers Want.Since.
func loadLogs(x *exchange, since int64, l *verbs.Loaded) {
	var rows []logged
	x.ask(stLogs, func(r row) error {
		rows = append(rows, logged{verbs.BatchID{Writer: r.text(1), Number: r.int(2)}, r.bytes(0)})
		return nil
	}, number(since))
	x.then(func() error {
		l.Logs, l.Handed = lead(rows, since, l.Moment), handed(rows, l.Moment)
		return nil
	})
}

// lead returns the logs that lead from a moment to a later one, none if one of
// them is missing. A moment is that of one stored batch; a batch that was not
// stored leads to one that nothing begins at.
func lead(rows []logged, since, to int64) (logs [][]byte) {
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

// handed returns the batch that was handed on at a moment, if any.
func handed(rows []logged, at int64) *verbs.Handed {
	for _, r := range rows {
		if from, _ := verbs.LogSpan(r.body); from == at && r.Writer != "" {
			return &verbs.Handed{BatchID: r.BatchID, Log: r.body}
		}
	}
	return nil
}

// logSpan is how far the moment moves in as many batches as logs are kept, on
// average.
const logSpan = verbs.LogsKept << 15

// writeLog keeps the log of a batch, and drops the oldest and those of batches
// that others handed on from where it begins, or later: they are not stored, and
// will not be.
func writeLog(x *exchange, d *verbs.Delta) {
	x.do(stLogDrop, number(d.From.Moment))
	x.do(stLogInsert, number(d.To.Moment), d.Log, text(d.Writer), number(d.Number))
	x.do(stLogDelete, number(d.To.Moment-logSpan))
}
