package postgres

// migration is one step of the schema. Steps are numbered from 1, each runs in a transaction, and none is
// changed after its release. A step only adds, so that a process of the previous version can continue beside
// it.
type migration struct {
	version int
	sql     []string
}

// migrations are all steps, in order. From 4 on there are parked tasks, which a program that
// knows 3 would take for damaged rows.
var migrations = []migration{{1, schema1}, {2, schema2}, {3, schema3}, {4, nil}}

// churnSettings are the settings of a table whose rows come and go: it is vacuumed by the number of its dead
// rows, regardless of its size, and without pauses.
const churnSettings = `autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.5, vacuum_truncate = off`

// schema1: times are Unix milliseconds, NULL for none.
var schema1 = []string{
	// Each batch updates this row. The free space beside it lets a new version go without a new index entry.
	`CREATE TABLE meta(
		id int2 PRIMARY KEY CHECK (id = 1),
		store_id text NOT NULL,
		moment int8 NOT NULL,
		generation int8 NOT NULL,
		seq int8 NOT NULL,
		place int8 NOT NULL,
		fence int8 NOT NULL,
		entry int8 NOT NULL,
		enqueued_ms int8 NOT NULL,
		woken_ms int8 NOT NULL,
		in_use int8 NOT NULL,
		in_use_isolated int8 NOT NULL,
		cut int8 NOT NULL) WITH (fillfactor = 10, ` + churnSettings + `)`,
	`CREATE TABLE writers(
		writer bytea PRIMARY KEY,
		number int8 NOT NULL,
		at timestamptz NOT NULL) WITH (fillfactor = 10, ` + churnSettings + `)`,

	// More than half of a page is left free, for another version of all of its rows: a batch often changes
	// neighbours, and the last version, which takes the place of the first, is the largest. body is a packed
	// task, request and result hold large values, env is erased at the end.
	`CREATE TABLE tasks(
		seq int8 PRIMARY KEY,
		id bytea NOT NULL,
		state int2 NOT NULL,
		session bytea,
		parent bytea,
		key bytea,
		body bytea NOT NULL,
		request bytea,
		env bytea,
		result bytea) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0)`,
	`ALTER TABLE tasks ALTER COLUMN body SET STORAGE MAIN`,
	`CREATE UNIQUE INDEX tasks_id ON tasks(id)`,
	`CREATE UNIQUE INDEX tasks_key ON tasks(key) WHERE key IS NOT NULL`,
	`CREATE INDEX tasks_session ON tasks(session) WHERE session IS NOT NULL`,
	`CREATE INDEX tasks_parent ON tasks(parent, seq) WHERE parent IS NOT NULL`,

	`CREATE TABLE line(
		queue bytea NOT NULL,
		ready bool NOT NULL,
		order_key int8 NOT NULL,
		place int8 NOT NULL,
		seq int8 NOT NULL,
		created_ms int8 NOT NULL,
		not_before_ms int8,
		wait_until_ms int8,
		PRIMARY KEY (queue, ready, order_key, place)) WITH (` + churnSettings + `)`,
	`CREATE INDEX line_created ON line(created_ms, seq) WITH (deduplicate_items = off)`,
	`CREATE INDEX line_timed ON line(not_before_ms, place) WHERE NOT ready AND not_before_ms IS NOT NULL`,
	`CREATE INDEX line_bounded ON line(wait_until_ms, place) WHERE wait_until_ms IS NOT NULL`,

	`CREATE TABLE turns(
		session bytea NOT NULL,
		order_key int8 NOT NULL,
		place int8 NOT NULL,
		seq int8 NOT NULL,
		PRIMARY KEY (session, order_key, place)) WITH (` + churnSettings + `)`,

	// took_ms is how long a completed task ran.
	`CREATE TABLE ended(
		ended_ms int8 NOT NULL,
		seq int8 NOT NULL,
		agent bytea,
		took_ms int8,
		PRIMARY KEY (ended_ms, seq)) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0)`,
	`CREATE INDEX ended_runs ON ended(agent, ended_ms, seq) WITH (deduplicate_items = off) WHERE took_ms IS NOT NULL`,

	`CREATE TABLE slots(
		agent bytea NOT NULL,
		slot int8 NOT NULL,
		task bytea NOT NULL,
		fence int8 NOT NULL,
		expires_ms int8,
		withheld bool NOT NULL,
		PRIMARY KEY (agent, slot)) WITH (fillfactor = 50, ` + churnSettings + `)`,

	// kind is one of the kinds in delta_lists.go. Rows with a count of 0 stay until a prune.
	`CREATE TABLE counts(
		kind int2 NOT NULL,
		name bytea NOT NULL,
		waiting int8 NOT NULL,
		ready int8 NOT NULL,
		PRIMARY KEY (kind, name)) WITH (fillfactor = 50, ` + churnSettings + `)`,

	`CREATE TABLE docs(
		kind bytea NOT NULL,
		id bytea NOT NULL,
		sort int8 NOT NULL,
		body bytea NOT NULL,
		PRIMARY KEY (kind, id)) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)`,
	`CREATE INDEX docs_sort ON docs(kind, sort, id)`,

	// One row for all entries of a batch: first and last are the Seqs of its oldest and newest entry,
	// newest_ms the latest time among them. Entries are packed, so the server need not compress them.
	`CREATE TABLE journal(
		last int8 PRIMARY KEY,
		first int8 NOT NULL,
		newest_ms int8 NOT NULL,
		writer bytea NOT NULL,
		body bytea NOT NULL) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0)`,
	`ALTER TABLE journal ALTER COLUMN body SET STORAGE EXTERNAL`,
}

// schema2: the changes of the newest batches, for processes that follow them. They are useful for seconds, so
// they need not survive a crash: after one, all processes load what they need.
var schema2 = []string{
	`CREATE UNLOGGED TABLE logs(
		moment int8 PRIMARY KEY,
		body bytea NOT NULL) WITH (` + churnSettings + `,
		toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0)`,
	`ALTER TABLE logs ALTER COLUMN body SET STORAGE EXTERNAL`,
	`CREATE TABLE turn()`,
}

// schema3: the lock for storing a batch, besides the one for preparing it, and the writer of each log's
// batch.
var schema3 = []string{
	`CREATE TABLE storing()`,
	`ALTER TABLE logs ADD COLUMN writer bytea`,
	`ALTER TABLE logs ADD COLUMN number int8`,
}
