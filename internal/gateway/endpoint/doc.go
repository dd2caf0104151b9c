// Package endpoint serves the tools of a gateway to MCP clients over streamable
// HTTP, in both eras of the protocol, and over stdin and stdout.
//
//	before 2026-07-28   sessions (Mcp-Session-Id), each the session of its calls;
//	                    a call is cancelled by a notification
//	from 2026-07-28     no sessions: a request is self-contained; a call is
//	                    cancelled by closing its connection
//
// In both eras a caller whose connection breaks leaves its tool queue at once:
// streams cannot be resumed, so nobody could receive the answer.
//
// Clients of the newer era that declare the tasks extension in a request may
// get a task as the answer: for an async tool, and for a call that has waited
// long in its tool queue. For an async tool all other clients get the ID of the
// task at once, as text; in a tool queue they keep waiting. The task is durable
// before the answer. If a client disconnects before the answer, the call and a
// task that it became are cancelled. After the answer only tasks/cancel cancels
// the task.
//
// The SDK implements the protocol, except for the most frequent request: a
// well-formed tools/call over HTTP is read and answered here (plain.go), byte
// for byte as the SDK would, which decodes a message a dozen times. Definitions
// and results of tools do not pass through the SDK's types, which would drop
// unknown fields: lists and results go out as the upstream wrote them.
package endpoint
