// Package peers has the queues that ours is compared with, each behind the
// same few calls: River on PostgreSQL, Asynq on Redis, backlite on SQLite.
// River on SQLite needs another version of River, and is a program of its own
// (bench/riversqlite).
package peers
