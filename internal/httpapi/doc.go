// Package httpapi is the HTTP API of a director: it converts requests to verbs of the
// engine, and rows to answers. It has no rules about tasks.
//
// # Mounting
//
// api.Routes is the table of all endpoints. New mounts a handler for each row. A row
// without a handler, or a handler without a row, is an error at start, so that only
// the endpoints of the table are reachable. Each handler is wrapped by a check of its
// route's scope.
//
// # The path of a request
//
//	request id, limits, headers → Host allowlist → cross-origin check →
//	route → token and scope → query and content type → handler → engine
//
// A handler answers or returns an error. Only answerError writes errors, and only
// httpio.Statuses maps codes to HTTP statuses. The cause of an error is logged with
// the request id and never sent.
//
// # Streams
//
// One goroutine tails the journal for all readers of GET /api/events (stream.Feed).
// It keeps the newest entries in a ring; older ones are read from the store. A
// reader holds one batch at a time, and ends if a write takes longer than
// httpio.WriteTimeout. A gap in a stream is announced by the event reset.
//
// # Other directors
//
// Directors that share PostgreSQL or Redis each answer for any task. Package forward
// gets what only one of them knows, on behalf of the caller: either a part of the
// answer, or the whole answer by forwarding the request.
//
// # Packages
//
// httpio reads requests and writes answers. access decides who may do what. view
// converts rows to wire types. live is the projection behind GET /api/live, stream has
// events and output, schedules the schedules, and terminal the WebSockets to agents.
// forward sends requests to other directors. apitest is the fixture of the tests.
package httpapi
