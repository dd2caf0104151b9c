// Package endpoint serves the tools of a gateway to MCP clients: over
// streamable HTTP, in both eras of the protocol, and over stdin and stdout.
//
//	before 2026-07-28   sessions (Mcp-Session-Id), each the session of its calls;
//	                    a call is cancelled by a notification
//	from 2026-07-28     no sessions: a request is whole in itself; a call is
//	                    cancelled by closing its connection
//
// In both eras a caller whose connection breaks leaves its tool queue at once:
// streams are not resumed here, so nobody could take the answer.
//
// Clients of the newer era that declare the tasks extension in a request may be
// answered with a task: for an async tool, and for a call that has waited long
// in its tool queue. All others are answered at once with the id of a task that
// an async tool became, in words, and go on waiting in a tool queue. The task is
// durable before the answer. A client that goes away before the answer has
// cancelled the call, and the task that it became; after it, nothing but
// tasks/cancel does.
//
// The SDK keeps the protocol, but for what nearly all requests are: a tools/call over
// HTTP that is as the protocol has it is read and answered here (plain.go), to the
// byte as the SDK would, which decodes a message a dozen times. What a tool is and what it answers does not pass
// through its types, which would drop what they do not know: lists and results
// go out as the upstream wrote them.
package endpoint
