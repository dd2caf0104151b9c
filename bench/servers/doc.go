// Package servers measures the stores that several directors share beside the
// queues that are best known on the same servers, on the same work: River on
// PostgreSQL and Asynq on Redis, on servers that it starts itself and that make
// every commit durable (synchronous_commit=on, appendfsync always). Beside them
// stands what the server does at most: a bare commit of one row, a bare SET.
package servers
