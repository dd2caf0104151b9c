// Package toolconf reads which tools there are and how many calls each may
// run side by side: the keys queues, mcpServers, restTools and openapiSpecs of
// signalbox.yaml, and whole files in the shape of .mcp.json or .ai-agent.json.
//
// Several files are merged: the capacity of a queue is the greatest that any of
// them gives, and a tool that two of them have is the first one's. All mistakes
// are reported together, each with its file, line and key.
package toolconf
