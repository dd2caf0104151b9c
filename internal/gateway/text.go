package gateway

import (
	"encoding/json"
	"strings"
)

// TextOf is what a tool answered, as far as it is text: the text blocks of a
// Result's Content, each from a line of its own.
func TextOf(content json.RawMessage) string {
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &blocks) // what is no list of blocks has no text
	var all []string
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}
