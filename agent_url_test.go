package signalbox_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox"
)

func TestAgentURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:9000": "http://127.0.0.1:9000", "http://127.0.0.1:9000/": "http://127.0.0.1:9000",
		"https://agent.example": "https://agent.example", "HTTP://h:1": "http://h:1", "http://[::1]:9": "http://[::1]:9",
	} {
		if got, ok := signalbox.AgentURL(text); got != want || !ok {
			t.Errorf("%s is taken as %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "h:1", "127.0.0.1:9000", "ftp://h", "file:///etc/passwd", "http://", "http:///x", "http://:80", "http:h", "//h:1",
		"http://h:1/x", "http://h:1//", "http://h:1/?", "http://h:1?", "http://h:1?x=1", "http://h:1#", "http://h:1/#", "http://h:1/x#",
		"http://h:1#x", "http://u@h:1", "http://u:p@h:1", "http://@h:1", "http://h:", "http://h:0", "http://h:65536", "http://h:x",
		"http://h:1/%2e", "http://h:1/\x00", "http://h 1", "http://h\r\nX: y",
	} {
		if got, ok := signalbox.AgentURL(text); ok {
			t.Errorf("%q is taken as %q", text, got)
		}
	}
}
