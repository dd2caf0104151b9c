package sqlite

// applicationID marks a file as ours ("SgBx"), so that no other program's
// database is taken for one.
const applicationID = 0x53674278

// migration is one step of the schema. Steps are numbered from 1, run in a
// transaction each, and are never changed once they were released.
type migration struct {
	version int
	sql     []string
}

// migrations are all steps, in order.
var migrations = []migration{{1, schema1}, {2, schema2}, {3, schema3}, {4, schema4}, {5, schema5}}

// Numbers that the rows of tasks hold for states: part of the file's format.
const (
	rowPending     = 1
	rowDispatching = 2
	rowWorking     = 3
	rowCancelling  = 4
	rowCompleted   = 5
	rowFailed      = 6
	rowCancelled   = 7
	rowTimeout     = 8
)

// schema1: times are Unix milliseconds, NULL where there is none.
var schema1 = []string{
	`CREATE TABLE meta(
		id INTEGER PRIMARY KEY CHECK (id = 1),
		store_id TEXT NOT NULL,
		seq INTEGER NOT NULL,
		place INTEGER NOT NULL,
		fence INTEGER NOT NULL,
		entry INTEGER NOT NULL,
		enqueued_ms INTEGER NOT NULL)`,

	`CREATE TABLE tasks(
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL,
		state INTEGER NOT NULL,
		rev INTEGER NOT NULL,
		queue TEXT NOT NULL,
		ready INTEGER,
		order_key INTEGER NOT NULL,
		place INTEGER NOT NULL,
		session_id TEXT,
		not_before_ms INTEGER,
		wait_until_ms INTEGER,
		ended_ms INTEGER,
		agent TEXT,
		reason TEXT,
		message TEXT,
		agent_url TEXT,
		slot INTEGER,
		fence INTEGER,
		task_id TEXT,
		dispatched_ms INTEGER,
		started_ms INTEGER,
		attempts INTEGER,
		claims INTEGER,
		no_answers INTEGER,
		last_error TEXT,
		has_env INTEGER,
		cancel_requested INTEGER,
		cancelled_by TEXT,
		limit_name TEXT,
		priority INTEGER,
		bias_ns INTEGER,
		enqueued_ms INTEGER NOT NULL,
		session_mode TEXT,
		on_lost TEXT,
		max_attempts INTEGER,
		retry_of TEXT,
		source TEXT,
		source_job TEXT,
		preview TEXT,
		idempotency_key TEXT,
		idempotency_hash TEXT,
		created_ms INTEGER,
		took_ms INTEGER)`,
	`CREATE UNIQUE INDEX tasks_id ON tasks(id)`,
	`CREATE UNIQUE INDEX tasks_idempotency ON tasks(idempotency_key) WHERE idempotency_key IS NOT NULL`,
	// No index below names the state, so that a change among the states in
	// flight touches none: ready is 1 or 0 while the task is pending and NULL
	// after that, ended_ms is set when it has ended, took_ms when it completed.
	//
	// A queue's line: what is ready, and what is blocked, each in its order.
	// A claim takes the first of the ready ones, however many are blocked.
	`CREATE INDEX tasks_line ON tasks(queue, ready, order_key, place) WHERE ready IS NOT NULL`,
	// What waits for its time, and what may not wait for ever.
	`CREATE INDEX tasks_timed ON tasks(not_before_ms, place) WHERE ready = 0 AND not_before_ms IS NOT NULL`,
	`CREATE INDEX tasks_bounded ON tasks(wait_until_ms, place) WHERE ready IS NOT NULL AND wait_until_ms IS NOT NULL`,
	`CREATE INDEX tasks_session ON tasks(session_id, ended_ms, order_key, place) WHERE session_id IS NOT NULL`,
	`CREATE INDEX tasks_ended ON tasks(ended_ms, seq) WHERE ended_ms IS NOT NULL`,
	`CREATE INDEX tasks_runs ON tasks(agent, ended_ms, seq) WHERE took_ms IS NOT NULL`,

	// Large values stand apart, so that a change of state does not rewrite
	// them. rest is packed (large.go), NULL where it would be empty.
	`CREATE TABLE requests(seq INTEGER PRIMARY KEY, prompt TEXT, rest BLOB)`,
	`CREATE TABLE results(seq INTEGER PRIMARY KEY, output TEXT, tail TEXT, rest BLOB)`,
	`CREATE TABLE envs(seq INTEGER PRIMARY KEY, sealed BLOB)`,

	`CREATE TABLE slots(
		agent TEXT NOT NULL,
		slot INTEGER NOT NULL,
		seq INTEGER NOT NULL,
		task_id TEXT NOT NULL,
		fence INTEGER NOT NULL,
		expires_ms INTEGER,
		withheld INTEGER NOT NULL,
		PRIMARY KEY (agent, slot)) WITHOUT ROWID`,
	`CREATE TABLE sessions(id TEXT PRIMARY KEY, agent TEXT NOT NULL, last_used_ms INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE INDEX sessions_used ON sessions(last_used_ms)`,
	`CREATE TABLE agents(
		name TEXT PRIMARY KEY,
		kind TEXT,
		url TEXT,
		slots INTEGER,
		fencing INTEGER,
		source TEXT,
		sealed_token BLOB,
		work_dir TEXT,
		version TEXT,
		created_ms INTEGER) WITHOUT ROWID`,
	`CREATE TABLE pauses(
		queue TEXT PRIMARY KEY,
		reason TEXT,
		paused_by TEXT,
		at_ms INTEGER,
		until_ms INTEGER) WITHOUT ROWID`,

	// One row for all entries of a commit: last and first are the numbers of
	// its newest and oldest entry, newest_ms the latest time among them.
	`CREATE TABLE journal(
		last INTEGER PRIMARY KEY,
		first INTEGER NOT NULL,
		newest_ms INTEGER NOT NULL,
		body BLOB NOT NULL)`,
}

// schema2: chats, bypass tasks, identity and audit. Columns that few tasks
// have are NULL in all others, and cost them nothing: parent_id is sought by,
// extra is packed (extra.go) because it is fixed at submit.
var schema2 = []string{
	`ALTER TABLE tasks ADD COLUMN parent_id TEXT`,
	`ALTER TABLE tasks ADD COLUMN extra BLOB`,
	`ALTER TABLE tasks ADD COLUMN stop_reason TEXT`,
	`ALTER TABLE tasks ADD COLUMN stop_message TEXT`,
	`DROP INDEX tasks_runs`, // see runs.go
	`CREATE INDEX tasks_parent ON tasks(parent_id) WHERE parent_id IS NOT NULL`,

	// state is NULL for an active session; current is 1 or NULL.
	`ALTER TABLE sessions ADD COLUMN source TEXT`,
	`ALTER TABLE sessions ADD COLUMN owner TEXT`,
	`ALTER TABLE sessions ADD COLUMN title TEXT`,
	`ALTER TABLE sessions ADD COLUMN state TEXT`,
	`ALTER TABLE sessions ADD COLUMN turns INTEGER`,
	`ALTER TABLE sessions ADD COLUMN created_ms INTEGER`,
	`ALTER TABLE sessions ADD COLUMN current INTEGER`,
	// Only what an agent had accepted had a row until now.
	`UPDATE sessions SET turns = 1, created_ms = last_used_ms`,
	`CREATE INDEX sessions_agent ON sessions(agent, last_used_ms)`,
	`CREATE UNIQUE INDEX sessions_current ON sessions(agent) WHERE current = 1`,

	`CREATE TABLE stales(
		seq INTEGER NOT NULL,
		fence INTEGER NOT NULL,
		agent TEXT,
		task_id TEXT,
		at_ms INTEGER,
		state TEXT,
		message TEXT,
		output TEXT,
		tail TEXT,
		rest BLOB)`,
	`CREATE UNIQUE INDEX stales_task ON stales(seq, fence)`,

	// Nothing is sought in them but the id: body is packed (extra.go).
	`CREATE TABLE tokens(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE users(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID`,

	`CREATE TABLE audit(
		seq INTEGER PRIMARY KEY,
		at_ms INTEGER,
		event_type TEXT,
		action TEXT,
		principal TEXT,
		user_id TEXT,
		agent_name TEXT,
		resource TEXT,
		result TEXT,
		ip_address TEXT,
		user_agent TEXT,
		details TEXT,
		severity TEXT,
		prev TEXT NOT NULL,
		hash TEXT NOT NULL)`,
}

// schema3: schedules with their firings, and the number of commits, by which a
// reader knows the moment that it sees.
var schema3 = []string{
	`ALTER TABLE meta ADD COLUMN commits INTEGER NOT NULL DEFAULT 0`,

	// body is packed (schedule_codec.go); n stands for the schedule in its runs.
	`CREATE TABLE schedules(n INTEGER PRIMARY KEY, id TEXT NOT NULL, rev INTEGER NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL)`,
	`CREATE UNIQUE INDEX schedules_id ON schedules(id)`,
	`CREATE UNIQUE INDEX schedules_name ON schedules(name)`,
	// open is 1 or NULL.
	`CREATE TABLE schedule_runs(
		schedule INTEGER NOT NULL,
		id TEXT NOT NULL,
		fired_ms INTEGER NOT NULL,
		open INTEGER,
		body BLOB NOT NULL,
		PRIMARY KEY (schedule, id)) WITHOUT ROWID`,
	`CREATE INDEX schedule_runs_newest ON schedule_runs(schedule, fired_ms, id)`,
	`CREATE INDEX schedule_runs_open ON schedule_runs(open) WHERE open IS NOT NULL`,
}
