// Package httpapi is the HTTP API of a director: it turns requests into verbs of
// the engine, and rows into answers. It holds no rule about tasks.
//
// # Mounting
//
// api.Routes is the one table of endpoints. New walks it and mounts a handler
// for each row; a row without a handler, or a handler without a row, is an
// error at start, so that nothing is reachable that the table does not name.
// Each route is wrapped by the check of its scope.
//
// # The path of a request
//
//	request id, limits, headers → Host allowlist → cross-origin check →
//	route → token and scope → query and content type → handler → engine
//
// A handler returns an error, or has answered. answerError is the one place
// that writes errors, and httpio.Statuses the one map from codes to HTTP
// statuses. The cause of an error is logged with the request id and never sent.
//
// # Streams
//
// One goroutine tails the journal for all readers of GET /api/events (stream.Feed).
// It keeps the newest entries in a ring; older ones are read from the store. A
// reader holds one batch at a time and ends when a write takes longer than
// httpio.WriteTimeout. A stream has no gaps, or says reset.
//
// # Other directors
//
// Over PostgreSQL or Redis any director answers for any task. What only one of
// them knows is asked of it, as the caller who asks (forward): either its
// answer becomes a part of ours, or the request is passed on whole.
//
// # Packages
//
// httpio reads requests and writes answers. access decides who may do what. view
// shows rows as wire types. live is the projection behind GET /api/live, stream
// has events and output, schedules the schedules, and terminal the WebSockets to
// agents. forward asks other directors. apitest is the fixture of the tests.
package httpapi
