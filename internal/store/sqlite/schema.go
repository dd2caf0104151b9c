package sqlite

// applicationID marks a file as ours ("SgBx"), to tell it from databases of other programs.
const applicationID = 0x53674278

// version is the version of the schema below. Files of earlier versions are upgraded (upgrade.go). Version 7
// has the tables of 6, and rows of parked tasks, which a program that knows 6 would take for damaged.
const version, sameTables = 7, 6

// Numbers of states in the rows of tasks: part of the file format.
const (
	rowPending     = 1
	rowDispatching = 2
	rowWorking     = 3
	rowCancelling  = 4
	rowCompleted   = 5
	rowFailed      = 6
	rowCancelled   = 7
	rowTimeout     = 8
	rowDamaged     = 9 // quarantined: damaged.go
	rowParked      = 10
)

// schema is the schema of a file. Times are Unix milliseconds, NULL for none.
var schema = []string{
	// moment identifies the last batch; sum_key is the checksum key if none was given, sum_check identifies
	// the key in use; journal entries up to cut have been pruned.
	`CREATE TABLE meta(
		id INTEGER PRIMARY KEY CHECK (id = 1),
		store_id TEXT NOT NULL,
		sum_key BLOB NOT NULL,
		sum_check INTEGER NOT NULL,
		moment INTEGER NOT NULL,
		seq INTEGER NOT NULL,
		place INTEGER NOT NULL,
		fence INTEGER NOT NULL,
		entry INTEGER NOT NULL,
		enqueued_ms INTEGER NOT NULL,
		woken_ms INTEGER NOT NULL,
		cut INTEGER NOT NULL)`,

	// body is a checksum over the whole row and a packed task, which repeats the columns that are not texts.
	`CREATE TABLE tasks(
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL,
		state INTEGER NOT NULL,
		queue TEXT NOT NULL,
		ready INTEGER,
		order_key INTEGER NOT NULL,
		place INTEGER NOT NULL,
		session TEXT,
		not_before_ms INTEGER,
		wait_until_ms INTEGER,
		ended_ms INTEGER,
		parent TEXT,
		key TEXT,
		body BLOB NOT NULL)`,
	`CREATE UNIQUE INDEX tasks_id ON tasks(id)`,
	`CREATE UNIQUE INDEX tasks_key ON tasks(key) WHERE key IS NOT NULL`,
	// No index below names the state, so that a change among the states in flight touches none: ready is 1 or
	// 0 while the task is pending and NULL after that, ended_ms is set when it has ended.
	//
	// The order of a queue: ready tasks and blocked ones, each in order. A claim takes the first ready one,
	// however many are blocked.
	`CREATE INDEX tasks_line ON tasks(queue, ready, order_key, place) WHERE ready IS NOT NULL`,
	// Tasks that wait for their time, and tasks with a wait timeout.
	`CREATE INDEX tasks_timed ON tasks(not_before_ms, place) WHERE ready = 0 AND not_before_ms IS NOT NULL`,
	`CREATE INDEX tasks_bounded ON tasks(wait_until_ms, place) WHERE ready IS NOT NULL AND wait_until_ms IS NOT NULL`,
	`CREATE INDEX tasks_session ON tasks(session, ended_ms, order_key, place) WHERE session IS NOT NULL`,
	`CREATE INDEX tasks_ended ON tasks(ended_ms, seq) WHERE ended_ms IS NOT NULL`,
	`CREATE INDEX tasks_parent ON tasks(parent) WHERE parent IS NOT NULL`,

	// Large values are separate, so that a change of state does not rewrite them. body is a checksum and a
	// packed value.
	`CREATE TABLE requests(seq INTEGER PRIMARY KEY, body BLOB NOT NULL)`,
	`CREATE TABLE results(seq INTEGER PRIMARY KEY, body BLOB NOT NULL)`,
	`CREATE TABLE envs(seq INTEGER PRIMARY KEY, sealed BLOB NOT NULL)`,
	// Rows that cannot be read, and what is wrong with them.
	`CREATE TABLE damaged(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, what TEXT NOT NULL)`,

	`CREATE TABLE slots(
		agent TEXT NOT NULL,
		slot INTEGER NOT NULL,
		task TEXT NOT NULL,
		fence INTEGER NOT NULL,
		expires_ms INTEGER,
		withheld INTEGER NOT NULL,
		PRIMARY KEY (agent, slot)) WITHOUT ROWID`,
	`CREATE TABLE docs(
		kind TEXT NOT NULL,
		id TEXT NOT NULL,
		sort INTEGER NOT NULL,
		body BLOB NOT NULL,
		PRIMARY KEY (kind, id)) WITHOUT ROWID`,
	`CREATE INDEX docs_sort ON docs(kind, sort, id)`,

	// One row for all entries of a batch: last and first are the Seqs of its newest and oldest entry,
	// newest_ms the latest time among them.
	`CREATE TABLE journal(
		last INTEGER PRIMARY KEY,
		first INTEGER NOT NULL,
		newest_ms INTEGER NOT NULL,
		body BLOB NOT NULL)`,
}
