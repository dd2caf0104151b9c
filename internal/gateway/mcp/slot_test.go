package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
)

// TestCancelIsSentBeforeNextCall: the call that takes over the slot of a
// cancelled call reaches the server after the cancel.
func TestCancelIsSentBeforeNextCall(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	hangs := make(chan struct{})
	s := rawHTTP(t, func(_ http.ResponseWriter, r *http.Request, req request) bool {
		what := req.Method
		if what == "tools/call" {
			var a struct{ Do string }
			_ = json.Unmarshal(req.Params.Arguments, &a)
			what = a.Do
		}
		mu.Lock()
		seen = append(seen, what)
		mu.Unlock()
		if what == "silent" {
			hangs <- struct{}{}
			<-r.Context().Done()
			return true
		}
		return false
	})
	h := ready(t, s, mcp.Options{})
	for range 50 {
		mu.Lock()
		seen = nil
		mu.Unlock()
		ctx, cancel := context.WithCancel(h.ctx())
		go func() {
			<-hangs
			cancel()
		}()
		if _, err := h.Call(ctx, gateway.Call{Tool: "srv__a", Arguments: json.RawMessage(do("silent", nil))}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		h.must("a", do("args", nil))
		mu.Lock()
		came := slices.Clone(seen)
		mu.Unlock()
		if !slices.Equal(came, []string{"silent", "notifications/cancelled", "args"}) {
			t.Fatalf("there came %q", came)
		}
	}
}
