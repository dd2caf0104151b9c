// Package mcptools gives a model loop the tools of an MCP server: of a
// director's gateway, or of any endpoint with streamable HTTP.
//
// It uses the official SDK with three additions. Answers are read as the server
// wrote them, so that large numbers and unknown kinds of content are kept (wire in
// carrier.go). The server's message in an error response is part of the error, but
// no secret is (carrier.go). After a server restart in the middle of a run, a new
// session is opened, and a call is repeated only if it certainly was not executed
// (toolset.go, session.go).
package mcptools
