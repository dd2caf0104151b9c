// Package gateway runs every tool call, from whatever frontend, through the tool
// queue that the tool is bound to, and then at the tool's provider: an MCP
// server, a REST tool or an OpenAPI description.
//
//	frontends          this package                     providers
//	/mcp, stdio  ─┐    Call: find the tool,      ┌─ gateway/mcp      servers, shared by all sessions
//	REST         ─┼──▶ wait in its tool queue, ──┼─ gateway/rest     one HTTP request per call
//	LLM runner   ─┘    run it, release the slot  └─ gateway/openapi  REST tools made from a description
//
// Answers of an upstream are passed on unchanged.
package gateway
