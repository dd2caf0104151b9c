package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// The block queue of GET /status is as the seed has it (work-queue, Status
// Endpoint).
func TestSeedStatus(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c))
	for range 7 {
		b.do("POST", "/api/queue/task", `{"prompt":"p"}`).want(t, http.StatusCreated, nil)
	}
	a := b.agent("coder", 2)
	b.work(a)
	b.work(a)
	c.pass(5 * time.Minute)
	var got map[string]json.RawMessage
	b.do("GET", "/status", "").want(t, http.StatusOK, &got)
	for key, want := range map[string]string{
		"type": `"view"`, "interfaces": `["statusable","observable","taskable"]`, "version": `"1.0.0"`,
		"queue": `{"depth":5,"max_size":50,"oldest_age_seconds":300,"dispatched_count":2}`,
	} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
}
