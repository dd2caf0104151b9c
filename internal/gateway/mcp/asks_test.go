package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// TestServerRequestsAreAnswered: requests in the stream of a call over HTTP are
// answered, any number of them if the server reads the answers. Unsupported methods
// are refused.
func TestServerRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answers, all := map[string]string{}, make(chan struct{}, 1)
	asked := 0
	take := func(r *http.Request) bool {
		var m struct {
			ID     string          `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == "" { // IDs of the provider's own requests are numbers
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		answers[m.ID] = string(m.Result)
		if m.Error != nil {
			answers[m.ID] = m.Error.Message
		}
		if len(answers) == asked {
			all <- struct{}{}
		}
		return true
	}
	s, _ := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if take(r) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		mu.Lock()
		from := asked
		asked += 400
		mu.Unlock()
		for i := range 400 {
			method := "ping"
			switch i {
			case 1:
				method = "roots/list"
			case 2:
				method = "sampling/createMessage"
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"ask-%d\",\"method\":%q,\"params\":{\"messages\":[],\"maxTokens\":1}}\n\n", from+i, method)
		}
		_ = http.NewResponseController(w).Flush()
		select { // a server that needs the answers waits for them
		case <-all:
		case <-r.Context().Done():
			return
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", r.Header.Get("Request-Id"))
	})
	h := ready(t, s, mcp.Options{})
	for range 4 {
		h.must("a", `{}`)
	}
	if s := h.Server(); s.Restarts != 0 {
		t.Errorf("afterwards %+v", s)
	}
	mu.Lock()
	defer mu.Unlock()
	if answers["ask-0"] != `{}` || answers["ask-1"] != `{"roots":[]}` || !strings.Contains(answers["ask-2"], "does not support") {
		t.Errorf("%q, %q, %q", answers["ask-0"], answers["ask-1"], answers["ask-2"])
	}
}

// TestBrokenStreamIsResumed: a server may end the stream of a call before the
// answer, and send the answer to a request that resumes after the last event.
func TestBrokenStreamIsResumed(t *testing.T) {
	calls := make(chan string, 1)
	resumed := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req request
		_ = json.NewDecoder(r.Body).Decode(&req)
		last := r.Header.Get("Last-Event-Id")
		if req.Method == "tools/call" || last != "" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		switch {
		case req.Method == "tools/call":
			calls <- string(req.ID)
			fmt.Fprint(w, "id: 4\nretry: 1\ndata: \n\nid: 5\n\n")
		case last == "5" && resumed == 0:
			resumed++ // again no answer but a later event, without retry
			fmt.Fprint(w, "id: 6\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
		case last == "6" && r.Header.Get("Mcp-Session-Id") == "the-session" && r.Header.Get("Authorization") == "Bearer topsecret":
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\"}]}}\n\n", <-calls)
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case len(req.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "the-session")
			rawAnswer(w, req)
		}
	}))
	t.Cleanup(srv.Close)
	h := ready(t, toolconf.Server{Name: "srv", Transport: toolconf.HTTP, URL: srv.URL, Shared: true, HealthProbe: "off",
		Headers: map[string]string{"Authorization": "Bearer topsecret"}}, mcp.Options{})
	if r := h.must("a", `{}`); string(r.Content) != `[{"type":"text"}]` {
		t.Errorf("%s", r.Content)
	}
	if s := h.Server(); s.Restarts != 0 || resumed != 1 {
		t.Errorf("%d, %+v", resumed, s)
	}
}
