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
// The SDK keeps the protocol. What a tool is and what it answers does not pass
// through its types, which would drop what they do not know: lists and results
// go out as the upstream wrote them.
package endpoint
