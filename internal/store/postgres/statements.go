package postgres

import (
	"strconv"
	"strings"
)

// stmtID names a statement that a session prepares.
type stmtID int

const (
	stBegin stmtID = iota
	stBeginTurn
	stCommit
	stRollback

	stMeta
	stMetaLock
	stMetaStep
	stMetaFence
	stNumber
	stNotify
	stTurn
	stStoring

	stTasks
	stKeys
	stRequests
	stHeads
	stQueueCounts
	stLimitCounts
	stTurns
	stNamed
	stSlotsOf
	stDue
	stNextDue
	stEndedFirst
	stCut
	stDocs

	stTaskInsert
	stTaskUpdate
	stTaskEnd
	stTaskSession
	stTaskNoEnv
	stTaskDelete
	stResultPut
	stLineDelete
	stLineInsert
	stTurnDelete
	stTurnInsert
	stEndedInsert
	stEndedDelete
	stSlotDelete
	stSlotUpdate
	stSlotInsert
	stCountPut
	stCountSweep
	stDocPut
	stDocDelete
	stJournalInsert
	stJournalDelete
	stLogs
	stLogInsert
	stLogDelete
	stLogDrop

	stTime
	stWhole
	stIDsFrom
	stIDsNewest
	stBefore
	stWaiting
	stWaitingAll
	stInFlight
	stOverdue
	stSessionTasks
	stDurations
	stChildren
	stSlots
	stCounts
	stStates
	stOldest
	stEnded
	stHeadsAll
	stJournal
	stJournalRange
	stPageID
	stPageIDFalling
	stPageSort
	stPageSortFalling

	numStatements
)

// standsBefore chooses rows of one half of a queue's line that stand before a
// place; a half is what is ready, or what is not.
const standsBefore = `FROM line WHERE queue = $1 AND (order_key, place) < ($2, $3) AND ready = `

// behind chooses rows of one half of a queue's line that stand behind a place.
const behind = `SELECT order_key, place, seq FROM line WHERE queue = c.name AND (order_key, place) > ($1, $2) AND ready = `

// seekEqual is an equality by which a table is joined, in words that no merge join
// knows. So the server cannot drive a join from a table that was empty when it
// made its plan, and is not any more: it must seek in it.
func seekEqual(column, value string) string { return column + " BETWEEN " + value + " AND " + value }

// seekEqualRow is the same for an index of several columns. A range of rows will not
// do: PostgreSQL seeks the first one, and then reads all that the first column
// has, since only that one ends the search.
func seekEqualRow(table, row string, columns ...string) string {
	var all []string
	for _, c := range columns {
		all = append(all, table+"."+c+" = ANY(ARRAY["+row+"."+c+"])")
	}
	return strings.Join(all, " AND ")
}

// fromArrays makes rows w of parameters that are arrays, a column each: "seq int8,
// state int2". The arrays stand in the list of a SELECT: in its FROM the server
// would put all rows aside before it looks at the first. One that ends before
// the others goes on with NULL, so one of nothing but NULL need not be sent.
func fromArrays(columns string) string {
	values, _ := arrays(columns)
	return "(SELECT " + values + ") AS w"
}

// into inserts such rows.
func into(table, columns string) string {
	values, names := arrays(columns)
	return "INSERT INTO " + table + "(" + names + ") SELECT " + values
}

func arrays(columns string) (values, names string) {
	var as, plain []string
	for n, column := range strings.Split(columns, ", ") {
		name, kind, _ := strings.Cut(column, " ")
		as = append(as, "unnest($"+strconv.Itoa(n+1)+"::"+kind+"[]) AS "+name)
		plain = append(plain, name)
	}
	return strings.Join(as, ", "), strings.Join(plain, ", ")
}

// small is a column of what was asked for of a task t, NULL where that is much:
// not all heads of a line that are read are claimed.
func small(column string) string {
	return `CASE WHEN octet_length(t.request) + coalesce(octet_length(t.env), 0) <= 2048 THEN t.` + column + ` END`
}

const page = `SELECT id, sort, body FROM docs WHERE kind = $1 AND `

// statements is every statement that the package prepares. Each goes by an
// index: plan_test.go.
var statements = [numStatements]string{
	// Under the lock each statement sees what was committed before it began.
	stBegin: `BEGIN ISOLATION LEVEL READ COMMITTED`,
	// What is read with the turn is read at one moment, though somebody stores.
	stBeginTurn: `BEGIN ISOLATION LEVEL REPEATABLE READ`,
	stCommit:    `COMMIT`,
	stRollback:  `ROLLBACK`,

	stMeta: `SELECT moment, generation, seq, place, fence, entry, enqueued_ms, woken_ms, in_use, in_use_isolated,
		coalesce((SELECT number FROM writers WHERE writer = $1::bytea), 0) FROM meta WHERE id = 1`,
	stMetaLock: `SELECT 1 FROM meta WHERE id = 1 FOR UPDATE`,
	// A division by zero ends the transaction, and with it all statements that
	// were sent behind this one, where somebody else's batch came first, or the
	// one that this one stands on ($15, $16) did not come to be stored.
	stMetaStep: `WITH moved AS (UPDATE meta SET moment = $2::int8, generation = $3::int8, seq = $4::int8, place = $5::int8,
			fence = $6::int8, entry = $7::int8, enqueued_ms = $8::int8, woken_ms = $9::int8, in_use = $10::int8,
			in_use_isolated = $11::int8, cut = greatest(cut, $12::int8) WHERE id = 1 AND moment = $1::int8
				AND ($15::bytea IS NULL OR (SELECT number FROM writers WHERE writer = $15::bytea) = $16::int8) RETURNING 1),
		mine AS (INSERT INTO writers(writer, number, at) VALUES($13::bytea, $14::int8, now())
			ON CONFLICT (writer) DO UPDATE SET number = EXCLUDED.number, at = EXCLUDED.at)
		SELECT 1 / (SELECT count(*) FROM moved)`,
	stMetaFence: `UPDATE meta SET moment = moment + 1 WHERE id = 1`,
	stNumber:    `SELECT number FROM writers WHERE writer = $1::bytea`,
	// Who waits here has no snapshot yet, as it has where it waits for a row:
	// with one the server could clear away nothing that others leave behind.
	stTurn:    `LOCK TABLE turn IN EXCLUSIVE MODE`,
	stStoring: `LOCK TABLE storing IN EXCLUSIVE MODE`,
	stNotify:  `SELECT pg_notify($1::text, $2::text)`,
	stTime:    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8`,

	stTasks: `SELECT w.n, t.body FROM unnest($1::bytea[]) WITH ORDINALITY AS w(id, n) JOIN tasks t ON ` + seekEqual(`t.id`, `w.id`),
	stKeys: `SELECT w.n, t.body FROM unnest($1::bytea[]) WITH ORDINALITY AS w(key, n),
		LATERAL (SELECT body FROM tasks WHERE key = w.key OFFSET 0) AS t`,
	stRequests: `SELECT w.n, t.request, t.env FROM unnest($1::int8[]) WITH ORDINALITY AS w(seq, n) JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + `
		WHERE t.request IS NOT NULL`,
	stHeads: `SELECT w.n, t.body, ` + small(`request`) + `, ` + small(`env`) + ` FROM unnest($1::bytea[], $2::int8[], $3::int8[], $4::int8[]) WITH ORDINALITY AS w(queue, order_key, place, most, n),
		LATERAL (SELECT seq, order_key, place FROM line l WHERE l.queue = w.queue AND l.ready = true
			AND (l.order_key, l.place) > (w.order_key, w.place) ORDER BY l.order_key, l.place LIMIT w.most) AS h
		JOIN tasks t ON ` + seekEqual(`t.seq`, `h.seq`) + ` ORDER BY w.n, h.order_key, h.place`,
	stQueueCounts: `SELECT w.n, c.waiting, c.ready FROM unnest($1::bytea[]) WITH ORDINALITY AS w(name, n)
		JOIN counts c ON c.kind = 1 AND ` + seekEqual(`c.name`, `w.name`),
	stLimitCounts: `SELECT w.n, c.waiting FROM unnest($1::bytea[]) WITH ORDINALITY AS w(name, n)
		JOIN counts c ON c.kind = 2 AND ` + seekEqual(`c.name`, `w.name`),
	stTurns: `SELECT w.n, t.body FROM unnest($1::bytea[]) WITH ORDINALITY AS w(session, n)
		JOIN turns u ON ` + seekEqual(`u.session`, `w.session`) + ` JOIN tasks t ON ` + seekEqual(`t.seq`, `u.seq`) + ` ORDER BY w.n, u.order_key, u.place`,
	stNamed: `SELECT w.n FROM unnest($1::bytea[]) WITH ORDINALITY AS w(session, n)
		WHERE (SELECT true FROM tasks t WHERE t.session = w.session LIMIT 1)`,
	stSlotsOf: `SELECT w.n, s.agent, s.slot, s.task, s.fence, s.expires_ms, s.withheld
		FROM unnest($1::bytea[]) WITH ORDINALITY AS w(agent, n) JOIN slots s ON ` + seekEqual(`s.agent`, `w.agent`) + ` ORDER BY w.n, s.slot`,
	stDue: `SELECT t.body FROM (SELECT seq, not_before_ms, place FROM line WHERE NOT ready AND not_before_ms IS NOT NULL
			AND (not_before_ms, place) > ($1::int8, $2::int8) AND not_before_ms <= $3::int8
			ORDER BY not_before_ms, place LIMIT $4::int8) AS d
		JOIN tasks t ON ` + seekEqual(`t.seq`, `d.seq`) + ` ORDER BY d.not_before_ms, d.place`,
	stNextDue: `SELECT not_before_ms FROM line WHERE NOT ready AND not_before_ms IS NOT NULL AND not_before_ms > $1::int8
		ORDER BY not_before_ms LIMIT 1`,
	stEndedFirst: `SELECT t.body FROM (SELECT seq, ended_ms FROM ended WHERE (ended_ms, seq) > ($1::int8, $2::int8) AND ended_ms < $3::int8
			ORDER BY ended_ms, seq LIMIT $4::int8) AS e
		JOIN tasks t ON ` + seekEqual(`t.seq`, `e.seq`) + ` ORDER BY e.ended_ms, e.seq`,
	// The first row that is not wholly older, and the last number of those
	// before it. Of a long journal the beginning is looked at.
	stCut: `WITH old AS (SELECT last, newest_ms >= $1::int8 AS stays FROM journal ORDER BY last LIMIT $2::int8),
			edge AS (SELECT min(last) AS last FROM old WHERE stays)
		SELECT coalesce((SELECT max(o.last) FROM old o WHERE NOT o.stays AND o.last < coalesce(e.last, o.last + 1)), 0), j.first, j.body,
			(SELECT cut FROM meta WHERE id = 1)
		FROM edge e LEFT JOIN journal j ON ` + seekEqual(`j.last`, `e.last`),
	stDocs: `SELECT w.n, d.sort, d.body FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS w(kind, id, n)
		JOIN docs d ON ` + seekEqualRow(`d`, `w`, `kind`, `id`),

	stTaskInsert: into(`tasks`, `seq int8, id bytea, state int2, session bytea, parent bytea, key bytea, body bytea, request bytea, env bytea`),
	stTaskUpdate: `UPDATE tasks t SET state = w.state, body = w.body
		FROM ` + fromArrays(`seq int8, state int2, body bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`),
	stTaskEnd: `UPDATE tasks t SET state = w.state, body = w.body, result = w.result
		FROM ` + fromArrays(`seq int8, state int2, body bytea, result bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`),
	stTaskSession: `UPDATE tasks t SET session = w.session FROM ` + fromArrays(`seq int8, session bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`),
	stTaskNoEnv:   `UPDATE tasks t SET env = NULL FROM ` + fromArrays(`seq int8`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`),
	stTaskDelete:  `DELETE FROM tasks t USING ` + fromArrays(`seq int8`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`),
	stResultPut:   `UPDATE tasks t SET result = w.result FROM ` + fromArrays(`seq int8, result bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`),

	stLineDelete: `DELETE FROM line l USING ` + fromArrays(`queue bytea, ready bool, order_key int8, place int8`) + `
		WHERE ` + seekEqualRow(`l`, `w`, `queue`, `ready`, `order_key`, `place`),
	stLineInsert: into(`line`, `queue bytea, ready bool, order_key int8, place int8, seq int8, created_ms int8, `+
		`not_before_ms int8, wait_until_ms int8`),
	stTurnDelete: `DELETE FROM turns u USING ` + fromArrays(`session bytea, order_key int8, place int8`) + `
		WHERE ` + seekEqualRow(`u`, `w`, `session`, `order_key`, `place`),
	stTurnInsert:  into(`turns`, `session bytea, order_key int8, place int8, seq int8`),
	stEndedInsert: into(`ended`, `ended_ms int8, seq int8, agent bytea, took_ms int8`),
	stEndedDelete: `DELETE FROM ended e USING ` + fromArrays(`ended_ms int8, seq int8`) + ` WHERE ` + seekEqualRow(`e`, `w`, `ended_ms`, `seq`),
	stSlotDelete:  `DELETE FROM slots s USING ` + fromArrays(`agent bytea, slot int8`) + ` WHERE ` + seekEqualRow(`s`, `w`, `agent`, `slot`),
	stSlotUpdate: `UPDATE slots s SET task = w.task, fence = w.fence, expires_ms = w.expires_ms, withheld = w.withheld
		FROM ` + fromArrays(`agent bytea, slot int8, task bytea, fence int8, expires_ms int8, withheld bool`) + ` WHERE ` + seekEqualRow(`s`, `w`, `agent`, `slot`),
	stSlotInsert: into(`slots`, `agent bytea, slot int8, task bytea, fence int8, expires_ms int8, withheld bool`),
	stCountPut: into(`counts`, `kind int2, name bytea, waiting int8, ready int8`) + `
		ON CONFLICT (kind, name) DO UPDATE SET waiting = EXCLUDED.waiting, ready = EXCLUDED.ready`,
	stCountSweep: `DELETE FROM counts WHERE waiting = 0`,
	stDocPut: into(`docs`, `kind bytea, id bytea, sort int8, body bytea`) + `
		ON CONFLICT (kind, id) DO UPDATE SET sort = EXCLUDED.sort, body = EXCLUDED.body`,
	stDocDelete: `DELETE FROM docs d USING ` + fromArrays(`kind bytea, id bytea`) + ` WHERE ` + seekEqualRow(`d`, `w`, `kind`, `id`),
	stJournalInsert: `INSERT INTO journal(last, first, newest_ms, writer, body)
		VALUES($1::int8, $2::int8, $3::int8, $4::bytea, $5::bytea)`,
	stJournalDelete: `DELETE FROM journal WHERE last <= $1::int8`,

	stLogs:      `SELECT body, writer, number FROM logs WHERE moment > $1::int8`,
	stLogInsert: `INSERT INTO logs(moment, body, writer, number) VALUES($1::int8, $2::bytea, $3::bytea, $4::int8)`,
	stLogDelete: `DELETE FROM logs WHERE moment <= $1::int8`,
	stLogDrop:   `DELETE FROM logs WHERE moment > $1::int8`,

	stWhole: `SELECT t.body, t.request, t.env, t.result,
			(SELECT d.body FROM docs d WHERE d.kind = $2::bytea AND d.id = convert_to(t.seq::text, 'UTF8'))
		FROM tasks t WHERE t.id = $1::bytea`,
	stIDsFrom: `SELECT id, seq FROM tasks WHERE id >= $1::bytea AND id < $2::bytea
		ORDER BY id DESC LIMIT $3::int8`,
	stIDsNewest: `SELECT id, seq FROM tasks ORDER BY seq DESC LIMIT $1::int8`,
	stBefore: `SELECT count(*) FROM (SELECT * FROM (SELECT 1 ` + standsBefore + `true LIMIT $4::int8) AS a
		UNION ALL SELECT * FROM (SELECT 1 ` + standsBefore + `false LIMIT $4::int8) AS b LIMIT $4::int8) AS both_halves`,
	stWaiting: `SELECT t.body FROM (SELECT h.* FROM (SELECT $3::bytea AS name) AS c,
			LATERAL (SELECT * FROM (` + behind + `true ORDER BY order_key, place LIMIT $4::int8) AS a
				UNION ALL SELECT * FROM (` + behind + `false ORDER BY order_key, place LIMIT $4::int8) AS b) AS h
			ORDER BY order_key, place LIMIT $4::int8) AS w
		JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + ` ORDER BY w.order_key, w.place`,
	stWaitingAll: `SELECT t.body FROM (SELECT h.* FROM counts c,
			LATERAL (SELECT * FROM (` + behind + `true ORDER BY order_key, place LIMIT $3::int8) AS a
				UNION ALL SELECT * FROM (` + behind + `false ORDER BY order_key, place LIMIT $3::int8) AS b) AS h
			WHERE c.kind = 1 AND c.waiting > 0 ORDER BY order_key, place LIMIT $3::int8) AS w
		JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + ` ORDER BY w.order_key, w.place`,
	stInFlight: `SELECT t.body FROM slots s JOIN tasks t ON ` + seekEqual(`t.id`, `s.task`) + `
		WHERE NOT s.withheld AND t.state BETWEEN 2 AND 4 ORDER BY s.fence`,
	stOverdue: `SELECT t.body FROM (SELECT seq, wait_until_ms, place FROM line WHERE wait_until_ms IS NOT NULL AND wait_until_ms <= $1::int8
			ORDER BY wait_until_ms, place LIMIT $2::int8) AS o
		JOIN tasks t ON ` + seekEqual(`t.seq`, `o.seq`) + ` ORDER BY o.wait_until_ms, o.place`,
	stSessionTasks: `SELECT t.body FROM (SELECT seq, order_key, place FROM turns WHERE session = $1::bytea
			ORDER BY order_key, place LIMIT $2::int8) AS u
		JOIN tasks t ON ` + seekEqual(`t.seq`, `u.seq`) + ` ORDER BY u.order_key, u.place`,
	stDurations: `SELECT took_ms FROM ended WHERE agent = $1::bytea AND took_ms IS NOT NULL ORDER BY ended_ms DESC, seq DESC LIMIT $2::int8`,
	stChildren:  `SELECT body FROM tasks WHERE parent = $1::bytea ORDER BY seq LIMIT $2::int8`,
	stSlots:     `SELECT agent, slot, task, fence, expires_ms, withheld FROM slots ORDER BY agent, slot`,
	stCounts:    `SELECT kind, name, waiting FROM counts WHERE waiting > 0`,
	stStates: `SELECT t.state, count(*) FROM slots s JOIN tasks t ON ` + seekEqual(`t.id`, `s.task`) + `
		WHERE NOT s.withheld AND t.state BETWEEN 2 AND 4 GROUP BY t.state`,
	stOldest: `SELECT created_ms FROM line ORDER BY created_ms, seq LIMIT 1`,
	stEnded: `SELECT t.body FROM (SELECT seq, ended_ms FROM ended WHERE (ended_ms, seq) < ($1::int8, $2::int8)
			ORDER BY ended_ms DESC, seq DESC LIMIT $3::int8) AS e
		JOIN tasks t ON ` + seekEqual(`t.seq`, `e.seq`) + ` ORDER BY e.ended_ms DESC, e.seq DESC`,
	stHeadsAll: `SELECT c.name, t.body FROM counts c,
			LATERAL (SELECT * FROM (SELECT * FROM (` + behind + `true ORDER BY order_key, place LIMIT $3::int8) AS a
				UNION ALL SELECT * FROM (` + behind + `false ORDER BY order_key, place LIMIT $3::int8) AS b) AS both_halves
				ORDER BY order_key, place LIMIT $3::int8) AS w
		JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + ` WHERE c.kind = 1 AND c.waiting > 0 ORDER BY c.name, w.order_key, w.place`,
	stJournal: `SELECT first, writer, body, (SELECT cut FROM meta WHERE id = 1) FROM journal WHERE last > $1::int8
		ORDER BY last LIMIT $2::int8`,
	stJournalRange: `SELECT coalesce((SELECT first FROM journal ORDER BY last LIMIT 1), 0),
		coalesce((SELECT last FROM journal ORDER BY last DESC LIMIT 1), 0), cut FROM meta WHERE id = 1`,

	stPageID:          page + `id >= $2::bytea AND (id > $2::bytea OR $4::bool) ORDER BY id LIMIT $3::int8`,
	stPageIDFalling:   page + `id < $2::bytea ORDER BY id DESC LIMIT $3::int8`,
	stPageSort:        page + `(sort, id) > ($2::int8, $3::bytea) ORDER BY sort, id LIMIT $4::int8`,
	stPageSortFalling: page + `(sort, id) < ($2::int8, $3::bytea) ORDER BY sort DESC, id DESC LIMIT $4::int8`,
}
