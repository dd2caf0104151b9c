// Package access decides who may do what: it finds out the caller of a request,
// admits it to a route, narrows the request to the caller's agents and tasks,
// and ends what lasts when the caller's rights end. Logins, tokens, users and
// the audit log are answered here too. It knows no other handler.
package access
