// Package servers compares the stores that several directors share with the best-known
// queues on the same servers, with the same work: River on PostgreSQL and Asynq on
// Redis. It starts the servers itself with durable commits (synchronous_commit=on,
// appendfsync always). The limit of the server is a bare commit of one row or a bare
// SET.
package servers
