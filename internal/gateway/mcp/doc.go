// Package mcp offers the tools of an MCP server: a program on stdin and
// stdout, or an address reached by streamable HTTP, SSE or a WebSocket. The
// official SDK speaks the protocol, in the era that the server knows; this
// package looks after the server.
//
//	                 ┌──────────── down: the reason is kept ◀───────────┐
//	                 ▼                                                  │
//	Start ──▶ starting ──▶ ready ── connection lost, process ended, ────┘
//	             ▲                  two health probes without an answer
//	             └── after 1 s, doubling to 60 s, reset by a minute of life
//
// A shared server is one instance for all sessions. One that is not shared is
// an instance for each session, from its first call until the session ends or
// has been idle for a while; its tools are learnt from an instance that ends
// again at once.
//
// Calls over streamable HTTP go past the SDK in the versions that have sessions
// (direct.go): it decodes each message several times.
//
// What the server answers never becomes a Go value on its way: each transport
// passes what it reads through an interceptor, which keeps the answer to a call as the
// server wrote it and shows the SDK an empty one. The interceptor also holds every
// message to 16 MiB. A longer one is read to its end but not kept: only the id
// in it is looked for, so that the call it answers fails and no other.
//
// A program gets a small environment and what its configuration declares. It
// ends when its stdin closes, else by SIGTERM two seconds later, else by
// SIGKILL three seconds after that, with all it started (package proc). When
// Signalbox itself is killed its stdin closes too, and on Linux it gets a
// SIGTERM; a program that ignores both, or children that it leaves behind,
// live on then.
//
// Only tools pass: a server's resources, prompts, and its wish to ask the
// caller something (sampling, roots, elicitation) do not.
package mcp
