package sqlite

// stmtID names a prepared statement.
type stmtID int

// statements are the texts of all statements, by stmtID. Each is prepared at most once per connection.
var statements []string

func statement(sql string) stmtID {
	statements = append(statements, sql)
	return stmtID(len(statements) - 1)
}

// taskColumns is the order in which rows of tasks are written and read; see
// bindTask and scanTask.
const taskColumns = `seq, id, state, queue, ready, order_key, place, session, not_before_ms, wait_until_ms, ended_ms, parent, key, body`

// The indexes of the columns in that order.
const (
	colSeq = iota
	colID
	colState
	colQueue
	colReady
	colOrder
	colPlace
	colSession
	colNotBefore
	colWaitUntil
	colEnded
	colParent
	colKey
	colBody
)

const selectTask = `SELECT ` + taskColumns + ` FROM tasks `

const page = `SELECT id, sort, body FROM docs WHERE kind = ?1 AND `

// Every statement that the package prepares.
var (
	stBegin     = statement(`BEGIN IMMEDIATE`)
	stCommit    = statement(`COMMIT`)
	stRollback  = statement(`ROLLBACK`)
	stReadBegin = statement(`BEGIN`)
	stReadEnd   = statement(`COMMIT`)

	stTaskInsert = statement(`INSERT INTO tasks(` + taskColumns + `) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)`)
	// The full update, and the frequent changes, which touch fewer indexes: updateOf.
	stTaskUpdate = statement(`UPDATE tasks SET id = ?2, state = ?3, queue = ?4, ready = ?5, order_key = ?6, place = ?7, session = ?8,
		not_before_ms = ?9, wait_until_ms = ?10, ended_ms = ?11, parent = ?12, key = ?13, body = ?14 WHERE seq = ?1`)
	stTaskState  = statement(`UPDATE tasks SET state = ?2, body = ?3 WHERE seq = ?1`)
	stTaskReady  = statement(`UPDATE tasks SET state = ?2, body = ?3, ready = ?4 WHERE seq = ?1`)
	stTaskEnd    = statement(`UPDATE tasks SET state = ?2, body = ?3, ended_ms = ?4 WHERE seq = ?1`)
	stTaskDelete = statement(`DELETE FROM tasks WHERE seq = ?1`)
	stTaskByID   = statement(selectTask + `WHERE id = ?1`)
	stTaskBySeq  = statement(selectTask + `WHERE seq = ?1`)
	stTaskByKey  = statement(selectTask + `WHERE key = ?1`)
	stTaskPlace  = statement(`SELECT state, queue, order_key, place FROM tasks WHERE id = ?1`)
	stHeads      = statement(selectTask + `WHERE queue = ?1 AND ready = 1 AND (order_key, place) > (?2, ?3)
		ORDER BY order_key, place`)
	stPending = statement(selectTask + `WHERE ready IS NOT NULL`)

	stRequestPut    = statement(`INSERT INTO requests(seq, body) VALUES(?1, ?2) ON CONFLICT(seq) DO UPDATE SET body = excluded.body`)
	stRequestGet    = statement(`SELECT r.body, e.sealed FROM requests r LEFT JOIN envs e ON e.seq = r.seq WHERE r.seq = ?1`)
	stRequestDelete = statement(`DELETE FROM requests WHERE seq = ?1`)
	stEnvPut        = statement(`INSERT INTO envs(seq, sealed) VALUES(?1, ?2)`)
	// Zeros of the same length overwrite the secret, since deleting a row leaves its bytes in the file.
	stEnvBlank  = statement(`UPDATE envs SET sealed = zeroblob(length(sealed)) WHERE seq = ?1`)
	stEnvDelete = statement(`DELETE FROM envs WHERE seq = ?1`)
	stResultPut = statement(`INSERT INTO results(seq, body) VALUES(?1, ?2) ON CONFLICT(seq) DO UPDATE SET body = ?2`)
	stResultGet = statement(`SELECT body FROM results WHERE seq = ?1`)

	stResultDelete = statement(`DELETE FROM results WHERE seq = ?1`)

	stSlotPut = statement(`INSERT INTO slots(agent, slot, task, fence, expires_ms, withheld) VALUES(?1, ?2, ?3, ?4, ?5, ?6)
		ON CONFLICT(agent, slot) DO UPDATE SET task = ?3, fence = ?4, expires_ms = ?5, withheld = ?6`)
	stSlotDelete   = statement(`DELETE FROM slots WHERE agent = ?1 AND slot = ?2`)
	stSlotsAll     = statement(`SELECT agent, slot, task, fence, expires_ms, withheld FROM slots ORDER BY agent, slot`)
	stSlotsOf      = statement(`SELECT agent, slot, task, fence, expires_ms, withheld FROM slots WHERE agent = ?1 ORDER BY slot`)
	stSlotWithhold = statement(`UPDATE slots SET withheld = 1 WHERE task = ?1`)
	stInFlight     = statement(`SELECT task FROM slots WHERE withheld = 0`)

	stTurn  = statement(selectTask + `WHERE session = ?1 AND ended_ms IS NULL ORDER BY order_key, place`)
	stNamed = statement(`SELECT 1 FROM tasks WHERE session = ?1 LIMIT 1`)
	stDue   = statement(selectTask + `WHERE ready = 0 AND not_before_ms IS NOT NULL AND (not_before_ms, place) > (?1, ?2)
		AND not_before_ms <= ?3 ORDER BY not_before_ms, place`)
	stNextDue = statement(`SELECT not_before_ms FROM tasks WHERE ready = 0 AND not_before_ms IS NOT NULL
		AND not_before_ms > ?1 ORDER BY not_before_ms LIMIT 1`)
	stOverdue = statement(selectTask + `WHERE ready IS NOT NULL AND wait_until_ms IS NOT NULL AND wait_until_ms <= ?1
		ORDER BY wait_until_ms, place`)
	stQueueNext = statement(`SELECT queue FROM tasks WHERE ready IS NOT NULL AND queue > ?1 ORDER BY queue LIMIT 1`)
	stWaiting   = statement(`SELECT order_key, place, seq FROM tasks WHERE queue = ?1 AND ready = 0 AND (order_key, place) > (?2, ?3)
		UNION ALL SELECT order_key, place, seq FROM tasks WHERE queue = ?1 AND ready = 1 AND (order_key, place) > (?2, ?3)
		ORDER BY order_key, place`)
	stEnded       = statement(selectTask + `WHERE ended_ms IS NOT NULL AND (ended_ms, seq) < (?1, ?2) ORDER BY ended_ms DESC, seq DESC`)
	stEndedFirst  = statement(selectTask + `WHERE ended_ms IS NOT NULL AND (ended_ms, seq) > (?1, ?2) AND ended_ms < ?3 ORDER BY ended_ms, seq`)
	stChildren    = statement(selectTask + `WHERE parent = ?1 ORDER BY seq`)
	stIDsFrom     = statement(`SELECT id, seq FROM tasks WHERE id >= ?1 AND id < ?2 ORDER BY id DESC`)
	stIDsNewest   = statement(`SELECT id, seq FROM tasks WHERE seq <= ?1 ORDER BY seq DESC`)
	stWithoutSlot = statement(`SELECT id FROM tasks WHERE seq > (SELECT coalesce(max(seq), 0) FROM tasks) - ?1 AND state IN (?2, ?3, ?4)
		AND id NOT IN (SELECT task FROM slots) ORDER BY seq LIMIT 100`)

	stDocGet          = statement(`SELECT sort, body FROM docs WHERE kind = ?1 AND id = ?2`)
	stDocPut          = statement(`INSERT INTO docs(kind, id, sort, body) VALUES(?1, ?2, ?3, ?4) ON CONFLICT(kind, id) DO UPDATE SET sort = ?3, body = ?4`)
	stDocDelete       = statement(`DELETE FROM docs WHERE kind = ?1 AND id = ?2`)
	stPageID          = statement(page + `id >= ?2 AND (id > ?2 OR ?3) ORDER BY id`)
	stPageIDFalling   = statement(page + `id < ?2 ORDER BY id DESC`)
	stPageSort        = statement(page + `(sort, id) > (?2, ?3) ORDER BY sort, id`)
	stPageSortFalling = statement(page + `(sort, id) < (?2, ?3) ORDER BY sort DESC, id DESC`)

	stJournalInsert = statement(`INSERT INTO journal(last, first, newest_ms, body) VALUES(?1, ?2, ?3, ?4)`)
	stJournalAfter  = statement(`SELECT last, first, newest_ms, body FROM journal WHERE last > ?1 ORDER BY last`)
	stJournalDelete = statement(`DELETE FROM journal WHERE last <= ?1`)

	stSeqs = statement(`SELECT seq FROM tasks WHERE seq > ?1 ORDER BY seq`)
	// A quarantined row is only in the unique indexes.
	stSetAside = statement(`UPDATE tasks SET state = ?2, ready = NULL, session = NULL, not_before_ms = NULL, wait_until_ms = NULL,
		ended_ms = NULL, parent = NULL WHERE seq = ?1`)
	stDamagedPut = statement(`INSERT INTO damaged(seq, id, what) VALUES(?1, ?2, ?3) ON CONFLICT(seq) DO NOTHING`)
	stDamagedGet = statement(`SELECT what FROM damaged WHERE seq = ?1`)
	stDamagedAll = statement(`SELECT id, what FROM damaged ORDER BY seq`)

	stMetaGet = statement(`SELECT store_id, sum_key, sum_check, moment, seq, place, fence, entry, enqueued_ms, woken_ms, cut FROM meta WHERE id = 1`)
	stMetaPut = statement(`UPDATE meta SET moment = ?1, seq = ?2, place = ?3, fence = ?4, entry = ?5, enqueued_ms = ?6, woken_ms = ?7,
		cut = ?8 WHERE id = 1`)
	stMetaSeen  = statement(`SELECT moment, entry FROM meta WHERE id = 1`)
	stMetaCheck = statement(`UPDATE meta SET sum_check = ?1 WHERE id = 1`)

	stSumTasks    = statement(`SELECT seq, body, id, queue, session, parent, key FROM tasks WHERE seq > ?1 ORDER BY seq`) // the text columns follow the body
	stSumTask     = statement(`UPDATE tasks SET body = ?2 WHERE seq = ?1`)
	stSumRequests = statement(`SELECT seq, body FROM requests WHERE seq > ?1 ORDER BY seq`)
	stSumRequest  = statement(`UPDATE requests SET body = ?2 WHERE seq = ?1`)
	stSumResults  = statement(`SELECT seq, body FROM results WHERE seq > ?1 ORDER BY seq`)
	stSumResult   = statement(`UPDATE results SET body = ?2 WHERE seq = ?1`)
)
