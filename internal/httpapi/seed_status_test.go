package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// The block queue of GET /status has the seed's form (work-queue, Status Endpoint).
func TestSeedStatus(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	for range 7 {
		b.Do("POST", "/api/queue/task", `{"prompt":"p"}`).Want(t, http.StatusCreated, nil)
	}
	a := b.AddAgent("coder", 2)
	b.Run(a)
	b.Run(a)
	c.Advance(5 * time.Minute)
	var got map[string]json.RawMessage
	b.Do("GET", "/status", "").Want(t, http.StatusOK, &got)
	for key, want := range map[string]string{
		"type": `"view"`, "interfaces": `["statusable","observable","taskable"]`, "version": `"1.0.0"`,
		"queue": `{"depth":5,"max_size":50,"oldest_age_seconds":300,"dispatched_count":2}`,
	} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
}
