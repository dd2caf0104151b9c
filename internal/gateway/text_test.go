package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

func TestTextOf(t *testing.T) {
	for content, want := range map[string]string{
		`[{"type":"text","text":"one"},{"type":"image","data":"AA==","text":"no"},{"type":"text","text":"two\nthree"}]`: "one\ntwo\nthree",
		`[5,{"type":"text","text":"good"},{"type":7}]`:                                                                  "good",
		`[]`: "", `null`: "", `"text"`: "", `{"type":"text","text":"no list"}`: "", `[{"type":"text"`: "", ``: "",
	} {
		if got := gateway.TextOf(json.RawMessage(content)); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}
