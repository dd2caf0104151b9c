// Package toolconf reads the configuration of tools and of their queues: the keys
// queues, mcpServers, restTools, openapiSpecs and commandTools of signalbox.yaml,
// and separate tools files.
//
// A tools file in YAML has the same keys as signalbox.yaml and is read as strictly:
// an unknown key is an error. One in JSON has the format of .mcp.json,
// .ai-agent.json or mcp-config.json, which other programs read too. Keys that only
// those programs use are ignored with a note.
//
// Several files are merged: a queue gets the greatest capacity that any of them
// gives it, and two servers, tools or descriptions with the same name must be
// identical. All errors are reported together, each with its file, line and key;
// none shows a value that may be secret.
package toolconf
