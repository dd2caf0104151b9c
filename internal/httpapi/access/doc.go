// Package access decides who may do what: it authenticates the caller of a request,
// admits it to a route, narrows the request to the caller's agents and tasks, and
// ends long requests when the caller loses its rights. It also has the handlers for
// logins, tokens, users and the audit log, and depends on no other handlers.
package access
