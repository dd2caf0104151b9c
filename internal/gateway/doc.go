// Package gateway takes every call of a tool, by whatever way it came, through
// the tool queue it is bound to, and hands it to the provider that has the tool:
// an MCP server, a REST tool or an OpenAPI description.
//
//	ways in            this package                     providers
//	/mcp, stdio  ─┐    Call: find the tool,      ┌─ gateway/mcp      servers, shared by all sessions
//	REST         ─┼──▶ wait in its tool queue, ──┼─ gateway/rest     one HTTP request a call
//	LLM runner   ─┘    run it, give the slot up  └─ gateway/openapi  REST tools made from a description
//
// What an upstream answers is handed on as it wrote it.
package gateway
