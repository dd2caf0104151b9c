package push_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// TestAnswerOfNonAgentIsNotShown: a caller that registers an address learns only whether an agent answers
// there.
func TestAnswerOfNonAgentIsNotShown(t *testing.T) {
	const secret = "INTERNAL-ONLY-DATA"
	for name, answer := range map[string]http.HandlerFunc{
		"error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":"` + secret + `","message":"` + secret + `"}`))
		},
		"state": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"state":"` + secret + `"}`))
		},
		"text": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(secret)) },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answer)
			defer server.Close()
			h := newFixture(t)
			h.put(signalbox.Agent{Name: "rogue", Kind: "demo", URL: server.URL}, "")
			h.start()
			h.await("it was asked", func() bool { m := h.live("rogue").Message; return m != "" && m != "not heard from yet" })
			if m := h.live("rogue").Message; strings.Contains(m, secret) {
				t.Errorf("status says %q", m)
			}
			for _, e := range h.journal() {
				if strings.Contains(e.Message, secret) {
					t.Errorf("the journal says %q", e.Message)
				}
			}
		})
	}
}
