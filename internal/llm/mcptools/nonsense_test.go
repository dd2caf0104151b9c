package mcptools_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/mcptools"
)

// An invalid list is an error on one line, however long the server's answer
// is.
func TestInvalidLists(t *testing.T) {
	for want, body := range map[string]string{
		"its answer is not a list of tools": `"result":{"tools":"none"}`,
		"inner trouble":                     `"error":{"code":-32603,"message":"inner\n trouble` + strings.Repeat("e", 100_000) + `"}`,
	} {
		c := tools(t, mcptools.Options{URL: scripted(t, func(string) string { return body })})
		if _, err := c.Tools(ctx(t)); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.500v", err)
		}
	}
}

// An unusable answer of a tool is not reported as a lost connection.
func TestInvalidAnswers(t *testing.T) {
	for want, body := range map[string]string{
		"The tool x answered, but its answer is not the result of a tool.": `"result":{"content":"just a text"}`,
		"is not known. An answer was larger than 32 MiB; ask for less":     `"result":{"content":[{"type":"text","text":"` + strings.Repeat("z", 33<<20) + `"}]}`,
	} {
		c := tools(t, mcptools.Options{URL: scripted(t, func(string) string { return body })})
		for range 2 {
			if got, isError, err := c.Call(ctx(t), llm.ToolCall{Name: "x"}); err != nil || !isError || !strings.Contains(got, want) {
				t.Errorf("%.300q %v %v", got, isError, err)
			}
		}
	}
}
