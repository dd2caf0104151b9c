// Package director is the HTTP layer of the director: it turns requests into
// verbs of the engine and rows into answers. It holds no rule about tasks.
//
// # Mounting
//
// api.Routes is the one table of endpoints. New walks it and mounts a handler
// for each row; a row without a handler, or a handler without a row, is an
// error at start, so nothing is reachable that the table does not name. Each
// route is wrapped by the check of its scope: a route that forgets to ask for
// a right cannot be written.
//
// # The way of a request
//
//	request id, limits, headers → Host allowlist → cross-origin check →
//	route → token and scope → query and content type → handler → engine
//
// A handler returns an error or has answered; answerError is the one place
// that writes errors, and statuses the one map from codes to HTTP statuses.
// What stands in an error's cause is logged with the request id and never
// sent.
//
// # Streams
//
// One goroutine tails the journal for all readers of GET /api/events (feed).
// It keeps the newest entries in a ring; who asks for older ones reads the
// store. A reader holds one batch at a time, so a slow one costs nothing but
// its connection, and ends when a write takes longer than writeTimeout. A
// stream is gap-free or says reset.
//
// # Other directors
//
// Over PostgreSQL or Redis there may be others, any of which answers for any
// task. What only one of them knows is asked of it, as the caller who asks:
// others_ask.go for a question of which the answer is a part of ours,
// others_pass.go for a request that it answers whole.
package httpapi
