// Package toolconf reads which tools there are and how many calls each may
// run side by side: the keys queues, mcpServers, restTools and openapiSpecs of
// signalbox.yaml, and whole files that others wrote.
//
// A file of tools in YAML holds the same four keys as signalbox.yaml and is
// read as strictly: what is not known is a mistake. One in JSON has the shape
// of .mcp.json or of .ai-agent.json, which other programs read too. Their keys
// are used where they mean something here and noted where they do not.
//
// Several files are merged: the capacity of a queue is the greatest that any of
// them gives, and two servers, tools or descriptions of one name must be the
// same. All mistakes are reported together, each with its file, line and key,
// and none with a value that may be a secret.
package toolconf
