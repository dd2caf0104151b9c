package sqlite

// schema4: the directors over the file, what each holds, what agents that pull
// said to them, and the tickets of tool queues that processes share. A file has
// one director, so these are few rows; they are kept so that all stores mean
// the same.
var schema4 = []string{
	`ALTER TABLE meta ADD COLUMN ticket_place INTEGER NOT NULL DEFAULT 0`,
	`ALTER TABLE meta ADD COLUMN ticket_fence INTEGER NOT NULL DEFAULT 0`,
	`CREATE TABLE directors(
		id TEXT PRIMARY KEY,
		run TEXT,
		url TEXT,
		version TEXT,
		secret TEXT,
		started_ms INTEGER,
		expires_ms INTEGER,
		draining INTEGER NOT NULL,
		since_ms INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE holdings(agent TEXT PRIMARY KEY, director TEXT NOT NULL, run TEXT, since_ms INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE heard(agent TEXT PRIMARY KEY, at_ms INTEGER, status BLOB) WITHOUT ROWID`,
	`CREATE TABLE tickets(
		queue TEXT NOT NULL,
		id TEXT NOT NULL,
		owner TEXT,
		session TEXT,
		agent TEXT,
		tool TEXT,
		execution TEXT,
		place INTEGER NOT NULL,
		fence INTEGER NOT NULL,
		since_ms INTEGER,
		granted_ms INTEGER,
		expires_ms INTEGER,
		leased INTEGER NOT NULL,
		idle_ms INTEGER,
		ends_ms INTEGER,
		used INTEGER NOT NULL,
		over INTEGER NOT NULL,
		PRIMARY KEY (queue, id)) WITHOUT ROWID`,
}

// schema5: how much is kept of tasks, and of all that have ended by owner. What
// was stored before counts nothing.
var schema5 = []string{
	`ALTER TABLE tasks ADD COLUMN request_size INTEGER`,
	`ALTER TABLE tasks ADD COLUMN result_size INTEGER`,
	`CREATE TABLE kept(owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID`,
}
