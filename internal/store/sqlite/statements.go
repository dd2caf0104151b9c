package sqlite

// stmtID names a prepared statement.
type stmtID int

// The statements. Each is prepared at most once in a connection.
const (
	stBegin stmtID = iota
	stCommit
	stRollback
	stSavepoint
	stRelease
	stRollbackTo
	stReadBegin
	stReadEnd

	stTaskInsert
	stTaskNew
	stTaskUpdate
	stTaskClaim
	stTaskRun
	stTaskEnd
	stTaskReady
	stTaskDelete
	stTaskByID
	stTaskBySeq
	stTaskByKey
	stTaskPlace
	stHead

	stRequestInsert
	stRequestGet
	stRequestByID
	stRequestDelete
	stEnvInsert
	stEnvGet
	stEnvBlank
	stEnvDelete
	stResultPut
	stResultByID
	stResultDelete

	stSlotPut
	stSlotDelete
	stSlotWithhold
	stSlotRenew
	stSlotsAll
	stSlotsHeld

	stSessionGet
	stSessionPut
	stSessionCurrent
	stSessionUncurrent
	stSessionsBefore
	stSessionsOfAgent
	stSessionDelete
	stSessionsUnused
	stSessionNamed
	stSessionTurn
	stSessionWaiting
	stSessionIn

	stTimedDue
	stTimedNext
	stOverdue

	stQueueNext
	stWaiting
	stEnded
	stEndedFirst
	stKeptAll
	stKeptPut
	stKeptDelete
	stChildren
	stRunsNewest
	stIDsFrom
	stIDsNewest

	stAgentPut
	stAgentDelete
	stAgentsAll
	stPausePut
	stPauseDelete
	stPausesAll

	stStalePut
	stStaleCut
	stStalesOf
	stStaleDelete

	stTokenPut
	stTokenDelete
	stTokensAll
	stUserPut
	stUserDelete
	stUsersAll

	stAuditInsert
	stAuditAfter
	stAuditBefore

	stScheduleByID
	stScheduleNamed
	stScheduleCount
	stScheduleInsert
	stScheduleUpdate
	stScheduleRename
	stScheduleDelete
	stSchedulesAll
	stRunOpen
	stRunPut
	stRunsCut
	stRunsDelete
	stRunsOf
	stRunsOpen

	stDirectorPut
	stDirectorDelete
	stDirectorsAll
	stHoldingPut
	stHoldingDelete
	stHoldingGet
	stHoldingsAll
	stHeardPut
	stHeardDelete
	stHeardAll

	stTicketPut
	stTicketDelete
	stTicketsOf

	stJournalInsert
	stJournalAfter
	stJournalOldest
	stJournalDelete
	stJournalCut

	stMetaGet
	stMetaPut
	stMetaSeen
	stPendingAll
	stStrays

	numStatements
)

// taskColumns is the order in which rows of tasks are written and read; see
// bindTask and scanTask.
const taskColumns = `seq, id, state, rev, queue, ready, order_key, place, session_id, not_before_ms, wait_until_ms,
	ended_ms, agent, reason, message, agent_url, slot, fence, task_id, dispatched_ms, started_ms, attempts, claims,
	no_answers, last_error, has_env, cancel_requested, cancelled_by, limit_name, priority, bias_ns, enqueued_ms,
	session_mode, on_lost, max_attempts, retry_of, source, source_job, preview, idempotency_key, idempotency_hash,
	created_ms, took_ms, parent_id, extra, stop_reason, stop_message, request_size, result_size`

const selectTask = `SELECT ` + taskColumns + ` FROM tasks `

// sessionColumns is the order in which rows of sessions are written and read;
// see bindSession and scanSession.
const sessionColumns = `id, agent, source, owner, title, state, turns, created_ms, last_used_ms, current`

const selectSession = `SELECT ` + sessionColumns + ` FROM sessions `

// auditColumns is the order in which rows of the audit log are written and
// read; see bindAudit and scanAudit.
const auditColumns = `seq, at_ms, event_type, action, principal, user_id, agent_name, resource, result, ip_address,
	user_agent, details, severity, prev, hash`

// chosenAudit are the filters of an audit query; a NULL chooses all.
const chosenAudit = ` AND (?2 IS NULL OR event_type = ?2) AND (?3 IS NULL OR action = ?3) AND (?4 IS NULL OR user_id = ?4)
	AND (?5 IS NULL OR agent_name = ?5) AND (?6 IS NULL OR severity = ?6) AND (?7 IS NULL OR at_ms >= ?7) ORDER BY seq `

// statements is every statement that the package prepares.
var statements = [numStatements]string{ //nolint:gosec // SQL that names the table of tokens holds no secret
	stBegin:      `BEGIN IMMEDIATE`,
	stCommit:     `COMMIT`,
	stRollback:   `ROLLBACK`,
	stSavepoint:  `SAVEPOINT verb`,
	stRelease:    `RELEASE verb`,
	stRollbackTo: `ROLLBACK TO verb`,
	stReadBegin:  `BEGIN`,
	stReadEnd:    `COMMIT`,

	stTaskInsert: `INSERT INTO tasks(` + taskColumns + `) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
		?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36,
		?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49)`,
	// A task that has not been claimed has none of the rest.
	stTaskNew: `INSERT INTO tasks(seq, id, state, rev, queue, ready, order_key, place, session_id, not_before_ms,
		wait_until_ms, has_env, limit_name, priority, bias_ns, enqueued_ms, session_mode, on_lost, max_attempts, retry_of,
		source, source_job, preview, idempotency_key, idempotency_hash, created_ms, parent_id, extra, request_size) VALUES(?1, ?2, 1, 1, ?3, ?4, ?5, ?6, ?7,
		?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25,
		?26, ?27)`,
	// All that a change can change; the rest is fixed at submit.
	stTaskUpdate: `UPDATE tasks SET state = ?3, rev = ?4, queue = ?5, ready = ?6, order_key = ?7, place = ?8,
		session_id = ?9, not_before_ms = ?10, wait_until_ms = ?11, ended_ms = ?12, agent = ?13, reason = ?14, message = ?15,
		agent_url = ?16, slot = ?17, fence = ?18, task_id = ?19, dispatched_ms = ?20, started_ms = ?21, attempts = ?22,
		claims = ?23, no_answers = ?24, last_error = ?25, has_env = ?26, cancel_requested = ?27, cancelled_by = ?28,
		limit_name = ?29, priority = ?30, bias_ns = ?31, enqueued_ms = ?32, took_ms = ?33,
		stop_reason = ?34, stop_message = ?35, result_size = ?36 WHERE seq = ?1 AND id = ?2`,
	// The three changes of every life, which touch fewer indexes: see update.
	stTaskClaim: `UPDATE tasks SET rev = ?2, state = ?3, task_id = ?4, message = ?5, started_ms = ?6, cancel_requested = ?7,
		cancelled_by = ?8, ready = ?9, agent = ?10, agent_url = ?11, slot = ?12, fence = ?13, dispatched_ms = ?14,
		claims = ?15 WHERE seq = ?1`,
	stTaskRun: `UPDATE tasks SET rev = ?2, state = ?3, task_id = ?4, message = ?5, started_ms = ?6, cancel_requested = ?7,
		cancelled_by = ?8 WHERE seq = ?1`,
	stTaskEnd: `UPDATE tasks SET rev = ?2, state = ?3, task_id = ?4, message = ?5, started_ms = ?6, cancel_requested = ?7,
		cancelled_by = ?8, ended_ms = ?9, took_ms = ?10, reason = ?11, last_error = ?12, has_env = ?13, result_size = ?14 WHERE seq = ?1`,
	stTaskReady:  `UPDATE tasks SET ready = ?2 WHERE seq = ?1`,
	stTaskDelete: `DELETE FROM tasks WHERE seq = ?1`,
	stTaskByID:   selectTask + `WHERE id = ?1`,
	stTaskBySeq:  selectTask + `WHERE seq = ?1`,
	stTaskByKey:  selectTask + `WHERE idempotency_key = ?1`,
	stTaskPlace:  `SELECT state, queue, order_key, place FROM tasks WHERE id = ?1`,
	stHead:       selectTask + `WHERE queue = ?1 AND ready = 1 ORDER BY order_key, place LIMIT 1`,

	stRequestInsert: `INSERT INTO requests(seq, prompt, rest) VALUES(?1, ?2, ?3)`,
	stRequestGet:    `SELECT prompt, rest FROM requests WHERE seq = ?1`,
	stRequestByID: `SELECT r.prompt, r.rest, e.sealed FROM tasks t LEFT JOIN requests r ON r.seq = t.seq
		LEFT JOIN envs e ON e.seq = t.seq WHERE t.id = ?1`,
	stRequestDelete: `DELETE FROM requests WHERE seq = ?1`,
	stEnvInsert:     `INSERT INTO envs(seq, sealed) VALUES(?1, ?2)`,
	stEnvGet:        `SELECT sealed FROM envs WHERE seq = ?1`,
	// Zeros of the same length go where the secret was; a row that is only
	// deleted leaves its bytes in the file.
	stEnvBlank:  `UPDATE envs SET sealed = zeroblob(length(sealed)) WHERE seq = ?1`,
	stEnvDelete: `DELETE FROM envs WHERE seq = ?1`,
	stResultPut: `INSERT INTO results(seq, output, tail, rest) VALUES(?1, ?2, ?3, ?4)
		ON CONFLICT(seq) DO UPDATE SET output = ?2, tail = ?3, rest = ?4`,
	stResultByID: `SELECT r.output, r.tail, r.rest FROM tasks t LEFT JOIN results r ON r.seq = t.seq WHERE t.id = ?1`,

	stResultDelete: `DELETE FROM results WHERE seq = ?1`,

	stSlotPut:      `INSERT INTO slots(agent, slot, seq, task_id, fence, expires_ms, withheld) VALUES(?1, ?2, ?3, ?4, ?5, ?6, 0)`,
	stSlotDelete:   `DELETE FROM slots WHERE agent = ?1 AND slot = ?2`,
	stSlotWithhold: `UPDATE slots SET withheld = 1 WHERE agent = ?1 AND slot = ?2`,
	stSlotRenew:    `UPDATE slots SET expires_ms = ?3 WHERE agent = ?1 AND slot = ?2`,
	stSlotsAll:     `SELECT agent, slot, task_id, fence, expires_ms, withheld, seq FROM slots ORDER BY agent, slot`,
	stSlotsHeld:    `SELECT seq FROM slots WHERE withheld = 0`,

	stSessionGet: selectSession + `WHERE id = ?1`,
	stSessionPut: `INSERT INTO sessions(` + sessionColumns + `) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
		ON CONFLICT(id) DO UPDATE SET agent = ?2, source = ?3, owner = ?4, title = ?5, state = ?6, turns = ?7, created_ms = ?8,
		last_used_ms = ?9, current = ?10`,
	stSessionCurrent:   selectSession + `WHERE agent = ?1 AND current = 1`,
	stSessionUncurrent: `UPDATE sessions SET current = NULL WHERE agent = ?1 AND current = 1 AND id <> ?2`,
	stSessionsBefore: selectSession + `WHERE (last_used_ms, id) < (?1, ?2)
		ORDER BY last_used_ms DESC, id DESC LIMIT ?3`,
	stSessionsOfAgent: selectSession + `WHERE agent = ?4 AND (last_used_ms, id) < (?1, ?2)
		ORDER BY last_used_ms DESC, id DESC LIMIT ?3`,
	stSessionDelete:  `DELETE FROM sessions WHERE id = ?1`,
	stSessionsUnused: `SELECT last_used_ms, id FROM sessions WHERE (last_used_ms, id) > (?1, ?2) AND last_used_ms < ?3 ORDER BY last_used_ms, id LIMIT ?4`,
	stSessionNamed:   `SELECT 1 FROM tasks WHERE session_id = ?1 LIMIT 1`,
	stSessionTurn: `SELECT seq FROM tasks WHERE session_id = ?1 AND ended_ms IS NULL AND ready IS NOT NULL
		AND (ready = 1 OR not_before_ms IS NULL OR not_before_ms <= ?2) ORDER BY order_key, place LIMIT 1`,
	stSessionWaiting: selectTask + `WHERE session_id = ?1 AND ended_ms IS NULL AND ready IS NOT NULL ORDER BY order_key, place`,
	stSessionIn:      selectTask + `WHERE session_id = ?1 AND ended_ms IS NULL ORDER BY order_key, place LIMIT ?2`,

	stTimedDue: `SELECT not_before_ms, place, seq FROM tasks WHERE ready = 0 AND not_before_ms IS NOT NULL
		AND (not_before_ms, place) > (?1, ?2) AND not_before_ms <= ?3 ORDER BY not_before_ms, place LIMIT ?4`,
	stTimedNext: `SELECT not_before_ms FROM tasks WHERE ready = 0 AND not_before_ms IS NOT NULL
		AND not_before_ms > ?1 ORDER BY not_before_ms LIMIT 1`,
	stOverdue: selectTask + `WHERE ready IS NOT NULL AND wait_until_ms IS NOT NULL AND wait_until_ms <= ?1
		ORDER BY wait_until_ms, place LIMIT ?2`,

	stQueueNext: `SELECT queue FROM tasks WHERE ready IS NOT NULL AND queue > ?1 ORDER BY queue LIMIT 1`,
	stWaiting: `SELECT order_key, place, seq FROM tasks WHERE queue = ?1 AND ready = 0 AND (order_key, place) > (?2, ?3)
		UNION ALL SELECT order_key, place, seq FROM tasks WHERE queue = ?1 AND ready = 1 AND (order_key, place) > (?2, ?3)
		ORDER BY order_key, place LIMIT ?4`,
	stEnded:      selectTask + `WHERE ended_ms IS NOT NULL AND (ended_ms, seq) < (?1, ?2) ORDER BY ended_ms DESC, seq DESC LIMIT ?3`,
	stEndedFirst: selectTask + `WHERE ended_ms IS NOT NULL AND (ended_ms, seq) > (?1, ?2) AND ended_ms < ?3 ORDER BY ended_ms, seq LIMIT ?4`,
	stKeptAll:    `SELECT owner, bytes FROM kept`,
	stKeptPut:    `INSERT INTO kept(owner, bytes) VALUES(?1, ?2) ON CONFLICT(owner) DO UPDATE SET bytes = excluded.bytes`,
	stKeptDelete: `DELETE FROM kept WHERE owner = ?1`,
	stChildren:   selectTask + `WHERE parent_id = ?1 ORDER BY seq LIMIT ?2`,
	stRunsNewest: `SELECT agent, ended_ms, seq, took_ms FROM tasks WHERE ended_ms IS NOT NULL AND ended_ms < ?1 ORDER BY ended_ms DESC, seq DESC LIMIT ?2`,
	stIDsFrom:    `SELECT id, seq FROM tasks WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3`,
	stIDsNewest:  `SELECT id, seq FROM tasks WHERE seq <= ?1 ORDER BY seq DESC LIMIT ?2`,

	stAgentPut: `INSERT INTO agents(name, kind, url, slots, fencing, source, sealed_token, work_dir, version, created_ms)
		VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT(name) DO UPDATE SET kind = ?2, url = ?3, slots = ?4,
		fencing = ?5, source = ?6, sealed_token = ?7, work_dir = ?8, version = ?9, created_ms = ?10`,
	stAgentDelete: `DELETE FROM agents WHERE name = ?1`,
	stAgentsAll: `SELECT name, kind, url, slots, fencing, source, sealed_token, work_dir, version, created_ms
		FROM agents ORDER BY name`,
	stPausePut: `INSERT INTO pauses(queue, reason, paused_by, at_ms, until_ms) VALUES(?1, ?2, ?3, ?4, ?5)
		ON CONFLICT(queue) DO UPDATE SET reason = ?2, paused_by = ?3, at_ms = ?4, until_ms = ?5`,
	stPauseDelete: `DELETE FROM pauses WHERE queue = ?1`,
	stPausesAll:   `SELECT queue, reason, paused_by, at_ms, until_ms FROM pauses ORDER BY queue`,

	stStalePut: `INSERT INTO stales(seq, fence, agent, task_id, at_ms, state, message, output, tail, rest)
		VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT(seq, fence) DO UPDATE SET agent = ?3, task_id = ?4,
		at_ms = ?5, state = ?6, message = ?7, output = ?8, tail = ?9, rest = ?10`,
	stStaleCut: `DELETE FROM stales WHERE seq = ?1
		AND fence <= (SELECT fence FROM stales WHERE seq = ?1 ORDER BY fence DESC LIMIT 1 OFFSET ?2)`,
	stStalesOf: `SELECT s.fence, s.agent, s.task_id, s.at_ms, s.state, s.message, s.output, s.tail, s.rest FROM tasks t
		LEFT JOIN stales s ON s.seq = t.seq WHERE t.id = ?1 ORDER BY s.fence`,
	stStaleDelete: `DELETE FROM stales WHERE seq = ?1`,

	stTokenPut:    `INSERT INTO tokens(id, body) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET body = ?2`,
	stTokenDelete: `DELETE FROM tokens WHERE id = ?1 RETURNING 1`,
	stTokensAll:   `SELECT id, body FROM tokens ORDER BY id`,
	stUserPut:     `INSERT INTO users(id, body) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET body = ?2`,
	stUserDelete:  `DELETE FROM users WHERE id = ?1 RETURNING 1`,
	stUsersAll:    `SELECT id, body FROM users ORDER BY id`,

	stAuditInsert: `INSERT INTO audit(` + auditColumns + `) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)`,
	stAuditAfter:  `SELECT ` + auditColumns + ` FROM audit WHERE seq > ?1` + chosenAudit + `LIMIT ?8`,
	stAuditBefore: `SELECT ` + auditColumns + ` FROM audit WHERE seq < ?1` + chosenAudit + `DESC LIMIT ?8`,

	stScheduleByID:   `SELECT n, id, rev, name, body FROM schedules WHERE id = ?1`,
	stScheduleNamed:  `SELECT id FROM schedules WHERE name = ?1`,
	stScheduleCount:  `SELECT count(*) FROM schedules`,
	stScheduleInsert: `INSERT INTO schedules(id, rev, name, body) VALUES(?1, ?2, ?3, ?4)`,
	// The name stands in an index, and changes seldom.
	stScheduleUpdate: `UPDATE schedules SET rev = ?2, body = ?3 WHERE n = ?1`,
	stScheduleRename: `UPDATE schedules SET name = ?2 WHERE n = ?1`,
	stScheduleDelete: `DELETE FROM schedules WHERE n = ?1`,
	stSchedulesAll:   `SELECT n, id, rev, name, body FROM schedules`,
	stRunOpen:        `SELECT open FROM schedule_runs WHERE schedule = ?1 AND id = ?2`,
	stRunPut: `INSERT INTO schedule_runs(schedule, id, fired_ms, open, body) VALUES(?1, ?2, ?3, ?4, ?5)
		ON CONFLICT(schedule, id) DO UPDATE SET fired_ms = ?3, open = ?4, body = ?5`,
	stRunsCut: `DELETE FROM schedule_runs WHERE schedule = ?1 AND open IS NULL AND (fired_ms, id) <=
		(SELECT fired_ms, id FROM schedule_runs WHERE schedule = ?1 ORDER BY fired_ms DESC, id DESC LIMIT 1 OFFSET ?2)`,
	stRunsDelete: `DELETE FROM schedule_runs WHERE schedule = ?1`,
	stRunsOf: `SELECT id, body FROM schedule_runs WHERE schedule = (SELECT n FROM schedules WHERE id = ?1)
		ORDER BY fired_ms DESC, id DESC LIMIT ?2`,
	stRunsOpen: `SELECT r.id, r.body, s.id FROM schedule_runs r JOIN schedules s ON s.n = r.schedule WHERE r.open = 1`,

	stDirectorPut: `INSERT INTO directors(id, run, url, version, secret, started_ms, expires_ms, draining, since_ms)
		VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(id) DO UPDATE SET run = ?2, url = ?3, version = ?4, secret = ?5,
		started_ms = ?6, expires_ms = ?7, draining = ?8, since_ms = ?9`,
	stDirectorDelete: `DELETE FROM directors WHERE id = ?1`,
	stDirectorsAll:   `SELECT id, run, url, version, secret, started_ms, expires_ms, draining, since_ms FROM directors ORDER BY id`,
	stHoldingPut: `INSERT INTO holdings(agent, director, run, since_ms) VALUES(?1, ?2, ?3, ?4)
		ON CONFLICT(agent) DO UPDATE SET director = ?2, run = ?3, since_ms = ?4`,
	stHoldingDelete: `DELETE FROM holdings WHERE agent = ?1`,
	stHoldingGet:    `SELECT agent, director, run, since_ms FROM holdings WHERE agent = ?1`,
	stHoldingsAll:   `SELECT agent, director, run, since_ms FROM holdings`,
	stHeardPut:      `INSERT INTO heard(agent, at_ms, status) VALUES(?1, ?2, ?3) ON CONFLICT(agent) DO UPDATE SET at_ms = ?2, status = ?3`,
	stHeardDelete:   `DELETE FROM heard WHERE agent = ?1`,
	stHeardAll:      `SELECT agent, at_ms, status FROM heard ORDER BY agent`,

	stTicketPut: `INSERT INTO tickets(queue, id, owner, session, agent, tool, execution, place, fence, since_ms, granted_ms,
		expires_ms, leased, idle_ms, ends_ms, used, over) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
		ON CONFLICT(queue, id) DO UPDATE SET owner = ?3, session = ?4, agent = ?5, tool = ?6, execution = ?7, place = ?8,
		fence = ?9, since_ms = ?10, granted_ms = ?11, expires_ms = ?12, leased = ?13, idle_ms = ?14, ends_ms = ?15, used = ?16, over = ?17`,
	stTicketDelete: `DELETE FROM tickets WHERE queue = ?1 AND id = ?2`,
	stTicketsOf: `SELECT queue, id, owner, session, agent, tool, execution, place, fence, since_ms, granted_ms, expires_ms,
		leased, idle_ms, ends_ms, used, over FROM tickets WHERE queue = ?1 ORDER BY id`,

	stJournalInsert: `INSERT INTO journal(last, first, newest_ms, body) VALUES(?1, ?2, ?3, ?4)`,
	stJournalAfter:  `SELECT first, body FROM journal WHERE last > ?1 ORDER BY last LIMIT ?2`,
	stJournalOldest: `SELECT last, first, newest_ms, body FROM journal WHERE last > ?1 ORDER BY last LIMIT ?2`,
	stJournalDelete: `DELETE FROM journal WHERE last <= ?1`,
	stJournalCut:    `UPDATE journal SET first = ?2, body = ?3 WHERE last = ?1`,

	stMetaGet: `SELECT store_id, seq, place, fence, entry, enqueued_ms, commits, ticket_place, ticket_fence FROM meta WHERE id = 1`,
	stMetaPut: `UPDATE meta SET seq = ?1, place = ?2, fence = ?3, entry = ?4, enqueued_ms = ?5, commits = ?6,
		ticket_place = ?7, ticket_fence = ?8 WHERE id = 1`,
	stMetaSeen: `SELECT commits, entry FROM meta WHERE id = 1`,
	stPendingAll: `SELECT seq, queue, ready, order_key, place, session_id, limit_name, created_ms FROM tasks
		WHERE ready IS NOT NULL`,
	stStrays: `SELECT id FROM tasks WHERE seq > (SELECT coalesce(max(seq), 0) FROM tasks) - ?1 AND state IN (?2, ?3, ?4)
		AND seq NOT IN (SELECT seq FROM slots WHERE seq IS NOT NULL) ORDER BY seq LIMIT 100`,
}
