package sqlite

import "github.com/signalbox-ai/signalbox"

var errNoCounters = signalbox.Errorf(signalbox.CodeStoreCorrupt, "the counters of the database are missing: it is damaged; restore it from a backup")

// firstStep is the version after the first of oldSteps.
const firstStep = 2

// oldSteps are the released steps between old versions, up to the last version with a column for each value.
var oldSteps = [...][]string{
	{ // 2: chats, bypass tasks, identity and audit
		`ALTER TABLE tasks ADD COLUMN parent_id TEXT`,
		`ALTER TABLE tasks ADD COLUMN extra BLOB`,
		`ALTER TABLE tasks ADD COLUMN stop_reason TEXT`,
		`ALTER TABLE tasks ADD COLUMN stop_message TEXT`,
		`DROP INDEX tasks_runs`,
		`CREATE INDEX tasks_parent ON tasks(parent_id) WHERE parent_id IS NOT NULL`,
		`ALTER TABLE sessions ADD COLUMN source TEXT`,
		`ALTER TABLE sessions ADD COLUMN owner TEXT`,
		`ALTER TABLE sessions ADD COLUMN title TEXT`,
		`ALTER TABLE sessions ADD COLUMN state TEXT`,
		`ALTER TABLE sessions ADD COLUMN turns INTEGER`,
		`ALTER TABLE sessions ADD COLUMN created_ms INTEGER`,
		`ALTER TABLE sessions ADD COLUMN current INTEGER`,
		// Before that, only sessions of accepted tasks had a row.
		`UPDATE sessions SET turns = 1, created_ms = last_used_ms`,
		`CREATE TABLE stales(seq INTEGER NOT NULL, fence INTEGER NOT NULL, agent TEXT, task_id TEXT, at_ms INTEGER,
			state TEXT, message TEXT, output TEXT, tail TEXT, rest BLOB)`,
		`CREATE TABLE tokens(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE users(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE audit(seq INTEGER PRIMARY KEY, at_ms INTEGER, event_type TEXT, action TEXT, principal TEXT, user_id TEXT,
			agent_name TEXT, resource TEXT, result TEXT, ip_address TEXT, user_agent TEXT, details TEXT, severity TEXT,
			prev TEXT NOT NULL, hash TEXT NOT NULL)`,
	},
	{ // 3: schedules with their firings, and the number of commits
		`ALTER TABLE meta ADD COLUMN commits INTEGER NOT NULL DEFAULT 0`,
		`CREATE TABLE schedules(n INTEGER PRIMARY KEY, id TEXT NOT NULL, rev INTEGER NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL)`,
		`CREATE TABLE schedule_runs(schedule INTEGER NOT NULL, id TEXT NOT NULL, fired_ms INTEGER NOT NULL, open INTEGER,
			body BLOB NOT NULL, PRIMARY KEY (schedule, id)) WITHOUT ROWID`,
	},
	{ // 4: directors and tickets; only their counters are carried over
		`ALTER TABLE meta ADD COLUMN ticket_place INTEGER NOT NULL DEFAULT 0`,
		`ALTER TABLE meta ADD COLUMN ticket_fence INTEGER NOT NULL DEFAULT 0`,
	},
	{ // 5: kept bytes of tasks, and of all ended tasks by owner
		`ALTER TABLE tasks ADD COLUMN request_size INTEGER`,
		`ALTER TABLE tasks ADD COLUMN result_size INTEGER`,
		`CREATE TABLE kept(owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID`,
	},
}

// renameOldTables renames old tables and indexes whose names the new schema uses.
var renameOldTables = []string{
	`DROP INDEX tasks_id`, `DROP INDEX tasks_idempotency`, `DROP INDEX tasks_line`, `DROP INDEX tasks_timed`, `DROP INDEX tasks_bounded`,
	`DROP INDEX tasks_session`, `DROP INDEX tasks_ended`, `DROP INDEX tasks_parent`,
	`ALTER TABLE meta RENAME TO old_meta`, `ALTER TABLE tasks RENAME TO old_tasks`, `ALTER TABLE requests RENAME TO old_requests`,
	`ALTER TABLE results RENAME TO old_results`, `ALTER TABLE envs RENAME TO old_envs`, `ALTER TABLE slots RENAME TO old_slots`,
	`ALTER TABLE journal RENAME TO old_journal`,
}

// keptTables copies what is unchanged.
var keptTables = []string{
	`INSERT INTO envs SELECT seq, sealed FROM old_envs WHERE sealed IS NOT NULL`,
	`INSERT INTO slots SELECT agent, slot, task_id, fence, expires_ms, withheld FROM old_slots`,
	`INSERT INTO journal SELECT last, first, newest_ms, body FROM old_journal`,
}

// droppedTables drops the old tables; no bytes of environments stay in the file.
var droppedTables = []string{
	`UPDATE old_envs SET sealed = zeroblob(length(sealed))`,
	`DROP TABLE old_meta`, `DROP TABLE old_tasks`, `DROP TABLE old_requests`, `DROP TABLE old_results`, `DROP TABLE old_envs`,
	`DROP TABLE old_slots`, `DROP TABLE old_journal`, `DROP TABLE sessions`, `DROP TABLE agents`, `DROP TABLE pauses`,
	`DROP TABLE stales`, `DROP TABLE tokens`, `DROP TABLE users`, `DROP TABLE audit`, `DROP TABLE schedules`, `DROP TABLE schedule_runs`,
	`DROP TABLE kept`, `DROP TABLE IF EXISTS directors`, `DROP TABLE IF EXISTS holdings`, `DROP TABLE IF EXISTS heard`,
	`DROP TABLE IF EXISTS tickets`,
}
