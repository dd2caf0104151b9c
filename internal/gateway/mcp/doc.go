// Package mcp offers the tools of an MCP server. The server is a program on
// stdin and stdout, or a URL reached by streamable HTTP, SSE or a WebSocket.
// The official SDK implements the protocol, in the era that the server
// supports; this package supervises the server.
//
//	                 ┌──────────── down: the reason is kept ◀───────────┐
//	                 ▼                                                  │
//	Start ──▶ starting ──▶ ready ── connection lost, process ended, ────┘
//	             ▲                  two health probes without an answer
//	             └── after 1 s, doubling to 60 s, reset by a minute of life
//
// A shared server is one instance for all sessions. A server that is not
// shared is an instance for each session, from its first call until the
// session ends or has been idle for a while. Its tools are listed by an
// instance that ends immediately afterwards.
//
// Calls over streamable HTTP bypass the SDK in the versions with sessions
// (direct.go), because the SDK decodes each message several times.
//
// Answers of the server are never decoded into Go values: each transport passes what
// it reads through an interceptor, which keeps the answer to a call as the server
// wrote it and shows the SDK an empty one. The interceptor also limits every message
// to 16 MiB. It reads a longer message to its end and keeps only its ID, so that just
// the call that it answers fails.
//
// A program gets a small environment plus the variables that its
// configuration declares. It ends when its stdin closes, otherwise by SIGTERM
// two seconds later, and by SIGKILL three seconds after that, with all its
// child processes (package proc). If Signalbox itself is killed, the
// program's stdin closes too, and on Linux it gets a SIGTERM. A program that
// ignores both, and children that it leaves behind, survive in that case.
//
// Only tools pass. A server's resources and prompts do not, nor do its
// requests to the caller (sampling, roots, elicitation).
package mcp
