// Package peers adapts the queues that ours is compared with to one interface: River on
// PostgreSQL, Asynq on Redis, backlite on SQLite. River on SQLite needs another
// version of River, and is a separate program (bench/riversqlite).
package peers
