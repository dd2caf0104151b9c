// Package mcptools gives a model loop the tools of an MCP server: those of a
// director's gateway, or of any endpoint that speaks streamable HTTP.
//
// It is a client of the official SDK with three additions. Answers are read
// as the server wrote them, so that large numbers and unknown kinds of content
// survive (wire.go). What the server says when it refuses a request reaches
// the reader of the error, and no secret does (carrier.go). A server that is
// started again in the middle of a run is found again, and a call is only
// repeated where it is certain that it was not carried out (toolset.go, session.go).
package mcptools
