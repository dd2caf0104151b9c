// Package httpio reads requests strictly and writes answers: JSON bodies, query
// parameters, errors with a hint and a status, and streams of server-sent events. It
// knows nothing about tasks and callers.
package httpio
