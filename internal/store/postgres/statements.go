package postgres

import (
	"strconv"
	"strings"
)

// stmtID names a statement that a session prepares.
type stmtID int

// statements lists every statement that the package prepares, by its ID; sessions says which kinds of
// sessions prepare it.
var (
	statements []string
	sessions   []sessionKind
)

type sessionKind int

const (
	reads sessionKind = 1 << iota
	writes
)

func reading(sql string) stmtID { return prepared(sql, reads) }
func writing(sql string) stmtID { return prepared(sql, writes) }
func both(sql string) stmtID    { return prepared(sql, reads|writes) }

func prepared(sql string, in sessionKind) stmtID {
	statements, sessions = append(statements, sql), append(sessions, in)
	return stmtID(len(statements) - 1)
}

// standsBefore selects rows of one half of a queue's line before a position; the halves are ready and not
// ready tasks.
const standsBefore = `FROM line WHERE queue = $1 AND (order_key, place) < ($2, $3) AND ready = `

// behind selects rows of one half of a queue's line after a position.
const behind = `SELECT order_key, place, seq FROM line WHERE queue = c.name AND (order_key, place) > ($1, $2) AND ready = `

// seekEqual is a join condition for equality in a form that no merge join supports. So the server must seek
// in the joined table by index, and cannot keep a plan made when that table was empty.
func seekEqual(column, value string) string { return column + " BETWEEN " + value + " AND " + value }

// seekEqualRow is seekEqual for an index of several columns. A row comparison would not do: PostgreSQL seeks
// its first row, and then reads all rows with the same first column, since only that column ends the scan.
func seekEqualRow(table, row string, columns ...string) string {
	var all []string
	for _, c := range columns {
		all = append(all, table+"."+c+" = ANY(ARRAY["+row+"."+c+"])")
	}
	return strings.Join(all, " AND ")
}

// fromArrays returns rows w made from array parameters, one for each column: "seq int8, state int2". The
// arrays are in the list of a SELECT: in its FROM the server would materialize all rows first. An array that
// ends early continues with NULL, so an array of only NULLs need not be sent.
func fromArrays(columns string) string {
	values, _ := arrays(columns)
	return "(SELECT " + values + ") AS w"
}

// into inserts rows of fromArrays.
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

// small is a column of the request of a task t, NULL if it is large: not all heads that are read are claimed.
func small(column string) string {
	return `CASE WHEN octet_length(t.request) + coalesce(octet_length(t.env), 0) <= 2048 THEN t.` + column + ` END`
}

const page = `SELECT id, sort, body FROM docs WHERE kind = $1 AND `

// Each uses an index: plan_test.go.
var (
	// Under the lock each statement sees everything committed before it began.
	stBegin = writing(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	// Reads with the turn have one snapshot, although another process may be storing.
	stBeginTurn = writing(`BEGIN ISOLATION LEVEL REPEATABLE READ`)
	stCommit    = writing(`COMMIT`)
	stRollback  = writing(`ROLLBACK`)

	stMeta = both(`SELECT moment, generation, seq, place, fence, entry, enqueued_ms, woken_ms, in_use, in_use_isolated,
		coalesce((SELECT number FROM writers WHERE writer = $1::bytea), 0) FROM meta WHERE id = 1`)
	stMetaLock = writing(`SELECT 1 FROM meta WHERE id = 1 FOR UPDATE`)
	// If another process's batch came first, or the batch that this one is based on ($15, $16) was not
	// stored, a division by zero ends the transaction, and with it all statements sent after this one.
	stMetaStep = writing(`WITH moved AS (UPDATE meta SET moment = $2::int8, generation = $3::int8, seq = $4::int8, place = $5::int8,
			fence = $6::int8, entry = $7::int8, enqueued_ms = $8::int8, woken_ms = $9::int8, in_use = $10::int8,
			in_use_isolated = $11::int8, cut = greatest(cut, $12::int8) WHERE id = 1 AND moment = $1::int8
				AND ($15::bytea IS NULL OR (SELECT number FROM writers WHERE writer = $15::bytea) = $16::int8) RETURNING 1),
		mine AS (INSERT INTO writers(writer, number, at) VALUES($13::bytea, $14::int8, now())
			ON CONFLICT (writer) DO UPDATE SET number = EXCLUDED.number, at = EXCLUDED.at)
		SELECT 1 / (SELECT count(*) FROM moved)`)
	stMetaFence = writing(`UPDATE meta SET moment = moment + 1 WHERE id = 1`)
	stNumber    = writing(`SELECT number FROM writers WHERE writer = $1::bytea`)
	// A process that waits here has no snapshot yet, unlike one that waits for a row. With a snapshot it
	// would keep the server from removing dead rows.
	stTurn    = writing(`LOCK TABLE turn IN EXCLUSIVE MODE`)
	stStoring = writing(`LOCK TABLE storing IN EXCLUSIVE MODE`)
	stNotify  = writing(`SELECT pg_notify($1::text, $2::text)`)
	stTime    = reading(`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8`)

	stTasks = both(`SELECT w.n, t.body FROM unnest($1::bytea[]) WITH ORDINALITY AS w(id, n) JOIN tasks t ON ` + seekEqual(`t.id`, `w.id`))
	stKeys  = writing(`SELECT w.n, t.body FROM unnest($1::bytea[]) WITH ORDINALITY AS w(key, n),
		LATERAL (SELECT body FROM tasks WHERE key = w.key OFFSET 0) AS t`)
	stRequests = writing(`SELECT w.n, t.request, t.env FROM unnest($1::int8[]) WITH ORDINALITY AS w(seq, n) JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + `
		WHERE t.request IS NOT NULL`)
	stHeads = writing(`SELECT w.n, t.body, ` + small(`request`) + `, ` + small(`env`) + ` FROM unnest($1::bytea[], $2::int8[], $3::int8[], $4::int8[]) WITH ORDINALITY AS w(queue, order_key, place, most, n),
		LATERAL (SELECT seq, order_key, place FROM line l WHERE l.queue = w.queue AND l.ready = true
			AND (l.order_key, l.place) > (w.order_key, w.place) ORDER BY l.order_key, l.place LIMIT w.most) AS h
		JOIN tasks t ON ` + seekEqual(`t.seq`, `h.seq`) + ` ORDER BY w.n, h.order_key, h.place`)
	stQueueCounts = both(`SELECT w.n, c.waiting, c.ready FROM unnest($1::bytea[]) WITH ORDINALITY AS w(name, n)
		JOIN counts c ON c.kind = 1 AND ` + seekEqual(`c.name`, `w.name`))
	stLimitCounts = writing(`SELECT w.n, c.waiting FROM unnest($1::bytea[]) WITH ORDINALITY AS w(name, n)
		JOIN counts c ON c.kind = 2 AND ` + seekEqual(`c.name`, `w.name`))
	stTurns = writing(`SELECT w.n, t.body FROM unnest($1::bytea[]) WITH ORDINALITY AS w(session, n)
		JOIN turns u ON ` + seekEqual(`u.session`, `w.session`) + ` JOIN tasks t ON ` + seekEqual(`t.seq`, `u.seq`) + ` ORDER BY w.n, u.order_key, u.place`)
	stNamed = writing(`SELECT w.n FROM unnest($1::bytea[]) WITH ORDINALITY AS w(session, n)
		WHERE (SELECT true FROM tasks t WHERE t.session = w.session LIMIT 1)`)
	stSlotsOf = writing(`SELECT w.n, s.agent, s.slot, s.task, s.fence, s.expires_ms, s.withheld
		FROM unnest($1::bytea[]) WITH ORDINALITY AS w(agent, n) JOIN slots s ON ` + seekEqual(`s.agent`, `w.agent`) + ` ORDER BY w.n, s.slot`)
	stDue = writing(`SELECT t.body FROM (SELECT seq, not_before_ms, place FROM line WHERE NOT ready AND not_before_ms IS NOT NULL
			AND (not_before_ms, place) > ($1::int8, $2::int8) AND not_before_ms <= $3::int8
			ORDER BY not_before_ms, place LIMIT $4::int8) AS d
		JOIN tasks t ON ` + seekEqual(`t.seq`, `d.seq`) + ` ORDER BY d.not_before_ms, d.place`)
	stNextDue = writing(`SELECT not_before_ms FROM line WHERE NOT ready AND not_before_ms IS NOT NULL AND not_before_ms > $1::int8
		ORDER BY not_before_ms LIMIT 1`)
	stEndedFirst = writing(`SELECT t.body FROM (SELECT seq, ended_ms FROM ended WHERE (ended_ms, seq) > ($1::int8, $2::int8) AND ended_ms < $3::int8
			ORDER BY ended_ms, seq LIMIT $4::int8) AS e
		JOIN tasks t ON ` + seekEqual(`t.seq`, `e.seq`) + ` ORDER BY e.ended_ms, e.seq`)
	// The first row that is not old as a whole, and the last Seq of the rows before it. Only the beginning of
	// a long journal is checked.
	stCut = writing(`WITH old AS (SELECT last, newest_ms >= $1::int8 AS stays FROM journal ORDER BY last LIMIT $2::int8),
			edge AS (SELECT min(last) AS last FROM old WHERE stays)
		SELECT coalesce((SELECT max(o.last) FROM old o WHERE NOT o.stays AND o.last < coalesce(e.last, o.last + 1)), 0), j.first, j.body,
			(SELECT cut FROM meta WHERE id = 1)
		FROM edge e LEFT JOIN journal j ON ` + seekEqual(`j.last`, `e.last`))
	stDocs = both(`SELECT w.n, d.sort, d.body FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS w(kind, id, n)
		JOIN docs d ON ` + seekEqualRow(`d`, `w`, `kind`, `id`))

	stTaskInsert = writing(into(`tasks`, `seq int8, id bytea, state int2, session bytea, parent bytea, key bytea, body bytea, request bytea, env bytea`))
	stTaskUpdate = writing(`UPDATE tasks t SET state = w.state, body = w.body
		FROM ` + fromArrays(`seq int8, state int2, body bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))
	stTaskEnd = writing(`UPDATE tasks t SET state = w.state, body = w.body, result = w.result
		FROM ` + fromArrays(`seq int8, state int2, body bytea, result bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))
	stTaskSession = writing(`UPDATE tasks t SET session = w.session FROM ` + fromArrays(`seq int8, session bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))
	stTaskNoEnv   = writing(`UPDATE tasks t SET env = NULL FROM ` + fromArrays(`seq int8`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))
	stTaskDelete  = writing(`DELETE FROM tasks t USING ` + fromArrays(`seq int8`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))
	stRequestPut  = writing(`UPDATE tasks t SET request = w.request FROM ` + fromArrays(`seq int8, request bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))
	stResultPut   = writing(`UPDATE tasks t SET result = w.result FROM ` + fromArrays(`seq int8, result bytea`) + ` WHERE ` + seekEqual(`t.seq`, `w.seq`))

	stLineDelete = writing(`DELETE FROM line l USING ` + fromArrays(`queue bytea, ready bool, order_key int8, place int8`) + `
		WHERE ` + seekEqualRow(`l`, `w`, `queue`, `ready`, `order_key`, `place`))
	stLineInsert = writing(into(`line`, `queue bytea, ready bool, order_key int8, place int8, seq int8, created_ms int8, `+
		`not_before_ms int8, wait_until_ms int8`))
	stTurnDelete = writing(`DELETE FROM turns u USING ` + fromArrays(`session bytea, order_key int8, place int8`) + `
		WHERE ` + seekEqualRow(`u`, `w`, `session`, `order_key`, `place`))
	stTurnInsert  = writing(into(`turns`, `session bytea, order_key int8, place int8, seq int8`))
	stEndedInsert = writing(into(`ended`, `ended_ms int8, seq int8, agent bytea, took_ms int8`))
	stEndedDelete = writing(`DELETE FROM ended e USING ` + fromArrays(`ended_ms int8, seq int8`) + ` WHERE ` + seekEqualRow(`e`, `w`, `ended_ms`, `seq`))
	stSlotDelete  = writing(`DELETE FROM slots s USING ` + fromArrays(`agent bytea, slot int8`) + ` WHERE ` + seekEqualRow(`s`, `w`, `agent`, `slot`))
	stSlotUpdate  = writing(`UPDATE slots s SET task = w.task, fence = w.fence, expires_ms = w.expires_ms, withheld = w.withheld
		FROM ` + fromArrays(`agent bytea, slot int8, task bytea, fence int8, expires_ms int8, withheld bool`) + ` WHERE ` + seekEqualRow(`s`, `w`, `agent`, `slot`))
	stSlotInsert = writing(into(`slots`, `agent bytea, slot int8, task bytea, fence int8, expires_ms int8, withheld bool`))
	stCountPut   = writing(into(`counts`, `kind int2, name bytea, waiting int8, ready int8`) + `
		ON CONFLICT (kind, name) DO UPDATE SET waiting = EXCLUDED.waiting, ready = EXCLUDED.ready`)
	stCountSweep = writing(`DELETE FROM counts WHERE waiting = 0`)
	stDocPut     = writing(into(`docs`, `kind bytea, id bytea, sort int8, body bytea`) + `
		ON CONFLICT (kind, id) DO UPDATE SET sort = EXCLUDED.sort, body = EXCLUDED.body`)
	stDocDelete     = writing(`DELETE FROM docs d USING ` + fromArrays(`kind bytea, id bytea`) + ` WHERE ` + seekEqualRow(`d`, `w`, `kind`, `id`))
	stJournalInsert = writing(`INSERT INTO journal(last, first, newest_ms, writer, body)
		VALUES($1::int8, $2::int8, $3::int8, $4::bytea, $5::bytea)`)
	stJournalDelete = writing(`DELETE FROM journal WHERE last <= $1::int8`)

	stLogs      = writing(`SELECT body, writer, number FROM logs WHERE moment > $1::int8`)
	stLogInsert = writing(`INSERT INTO logs(moment, body, writer, number) VALUES($1::int8, $2::bytea, $3::bytea, $4::int8)`)
	stLogDelete = writing(`DELETE FROM logs WHERE moment <= $1::int8`)
	stLogDrop   = writing(`DELETE FROM logs WHERE moment > $1::int8`)

	stWhole = reading(`SELECT t.body, t.request, t.env, t.result,
			(SELECT d.body FROM docs d WHERE d.kind = $2::bytea AND d.id = convert_to(t.seq::text, 'UTF8'))
		FROM tasks t WHERE t.id = $1::bytea`)
	stIDsFrom = reading(`SELECT id, seq FROM tasks WHERE id >= $1::bytea AND id < $2::bytea
		ORDER BY id DESC LIMIT $3::int8`)
	stIDsNewest = reading(`SELECT id, seq FROM tasks ORDER BY seq DESC LIMIT $1::int8`)
	stBefore    = reading(`SELECT count(*) FROM (SELECT * FROM (SELECT 1 ` + standsBefore + `true LIMIT $4::int8) AS a
		UNION ALL SELECT * FROM (SELECT 1 ` + standsBefore + `false LIMIT $4::int8) AS b LIMIT $4::int8) AS both_halves`)
	stWaiting = reading(`SELECT t.body FROM (SELECT h.* FROM (SELECT $3::bytea AS name) AS c,
			LATERAL (SELECT * FROM (` + behind + `true ORDER BY order_key, place LIMIT $4::int8) AS a
				UNION ALL SELECT * FROM (` + behind + `false ORDER BY order_key, place LIMIT $4::int8) AS b) AS h
			ORDER BY order_key, place LIMIT $4::int8) AS w
		JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + ` ORDER BY w.order_key, w.place`)
	stWaitingAll = reading(`SELECT t.body FROM (SELECT h.* FROM counts c,
			LATERAL (SELECT * FROM (` + behind + `true ORDER BY order_key, place LIMIT $3::int8) AS a
				UNION ALL SELECT * FROM (` + behind + `false ORDER BY order_key, place LIMIT $3::int8) AS b) AS h
			WHERE c.kind = 1 AND c.waiting > 0 ORDER BY order_key, place LIMIT $3::int8) AS w
		JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + ` ORDER BY w.order_key, w.place`)
	stInFlight = reading(`SELECT t.body FROM slots s JOIN tasks t ON ` + seekEqual(`t.id`, `s.task`) + `
		WHERE NOT s.withheld AND t.state BETWEEN 2 AND 4 ORDER BY s.fence`)
	stOverdue = reading(`SELECT t.body FROM (SELECT seq, wait_until_ms, place FROM line WHERE wait_until_ms IS NOT NULL AND wait_until_ms <= $1::int8
			ORDER BY wait_until_ms, place LIMIT $2::int8) AS o
		JOIN tasks t ON ` + seekEqual(`t.seq`, `o.seq`) + ` ORDER BY o.wait_until_ms, o.place`)
	stSessionTasks = reading(`SELECT t.body FROM (SELECT seq, order_key, place FROM turns WHERE session = $1::bytea
			ORDER BY order_key, place LIMIT $2::int8) AS u
		JOIN tasks t ON ` + seekEqual(`t.seq`, `u.seq`) + ` ORDER BY u.order_key, u.place`)
	stDurations = reading(`SELECT took_ms FROM ended WHERE agent = $1::bytea AND took_ms IS NOT NULL ORDER BY ended_ms DESC, seq DESC LIMIT $2::int8`)
	stChildren  = reading(`SELECT body FROM tasks WHERE parent = $1::bytea ORDER BY seq LIMIT $2::int8`)
	stSlots     = reading(`SELECT agent, slot, task, fence, expires_ms, withheld FROM slots ORDER BY agent, slot`)
	stCounts    = reading(`SELECT kind, name, waiting FROM counts WHERE waiting > 0`)
	stStates    = reading(`SELECT t.state, count(*) FROM slots s JOIN tasks t ON ` + seekEqual(`t.id`, `s.task`) + `
		WHERE NOT s.withheld AND t.state BETWEEN 2 AND 4 GROUP BY t.state`)
	stOldest = reading(`SELECT created_ms FROM line ORDER BY created_ms, seq LIMIT 1`)
	stEnded  = reading(`SELECT t.body FROM (SELECT seq, ended_ms FROM ended WHERE (ended_ms, seq) < ($1::int8, $2::int8)
			ORDER BY ended_ms DESC, seq DESC LIMIT $3::int8) AS e
		JOIN tasks t ON ` + seekEqual(`t.seq`, `e.seq`) + ` ORDER BY e.ended_ms DESC, e.seq DESC`)
	stHeadsAll = reading(`SELECT c.name, t.body FROM counts c,
			LATERAL (SELECT * FROM (SELECT * FROM (` + behind + `true ORDER BY order_key, place LIMIT $3::int8) AS a
				UNION ALL SELECT * FROM (` + behind + `false ORDER BY order_key, place LIMIT $3::int8) AS b) AS both_halves
				ORDER BY order_key, place LIMIT $3::int8) AS w
		JOIN tasks t ON ` + seekEqual(`t.seq`, `w.seq`) + ` WHERE c.kind = 1 AND c.waiting > 0 ORDER BY c.name, w.order_key, w.place`)
	stJournal = reading(`SELECT first, writer, body, (SELECT cut FROM meta WHERE id = 1) FROM journal WHERE last > $1::int8
		ORDER BY last LIMIT $2::int8`)
	stJournalRange = reading(`SELECT coalesce((SELECT first FROM journal ORDER BY last LIMIT 1), 0),
		coalesce((SELECT last FROM journal ORDER BY last DESC LIMIT 1), 0), cut FROM meta WHERE id = 1`)

	stPageID          = both(page + `id >= $2::bytea AND (id > $2::bytea OR $4::bool) ORDER BY id LIMIT $3::int8`)
	stPageIDFalling   = both(page + `id < $2::bytea ORDER BY id DESC LIMIT $3::int8`)
	stPageSort        = both(page + `(sort, id) > ($2::int8, $3::bytea) ORDER BY sort, id LIMIT $4::int8`)
	stPageSortFalling = both(page + `(sort, id) < ($2::int8, $3::bytea) ORDER BY sort DESC, id DESC LIMIT $4::int8`)
)
