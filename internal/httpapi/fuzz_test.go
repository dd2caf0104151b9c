package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// encoding/json accepts everything that the strict reader accepts, with the same result.
func FuzzBody(f *testing.F) {
	f.Add([]byte(seedRequest))
	for _, c := range badSubmits {
		f.Add([]byte(c.body))
	}
	f.Add([]byte(`{"prompt":"😀 \\ud800","env":{"A":""},"project":{},"thinking":true,"not_before":"2025-01-17T10:00:00.5+02:00","priority":-0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want api.SubmitRequest
		if err := httpapi.Decode(data, &got); err != nil {
			if code := signalbox.CodeOf(err); code != signalbox.CodeValidation && code != signalbox.CodeTooLarge {
				t.Fatalf("%v (%s)", err, code)
			}
			return
		}
		if len(data) == 0 {
			t.Fatal("an empty body was taken")
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if got.NotBefore != nil && want.NotBefore != nil && got.NotBefore.Equal(*want.NotBefore) {
			got.NotBefore, want.NotBefore = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nbut encoding/json has\n%+v", got, want)
		}
	})
}

// A query makes a list fail only with a validation error.
func FuzzQueries(f *testing.F) {
	for _, s := range []string{"MTczNzEwODAwMDAwMC4x", "2h", "7d", "30s", "-1", "99999999999999999999", "2025-01-17T10:00:00Z", "\xff", "%", "a&b=c"} {
		f.Add(s)
	}
	b := apitest.New(&testing.T{})
	b.Server.Stop() // a stream without a filter ends at once
	f.Fuzz(func(t *testing.T, s string) {
		b.T = t
		escaped := strings.NewReplacer("%", "%25", "&", "%26", "+", "%2B", "#", "%23", ";", "%3B", " ", "%20").Replace(s)
		if strings.ContainsFunc(escaped, func(r rune) bool { return r < '!' || r > '~' }) || len(s) > 1000 {
			t.Skip("no client can send this as a query")
		}
		for _, path := range []string{"/api/queue?after=", "/api/queue?limit=", "/api/queue?queue=", "/api/history?since=", "/api/history?before=", "/api/history?q=", "/api/events?queue_id="} {
			got := b.Do("GET", path+escaped, "")
			if got.StatusCode != http.StatusOK && got.StatusCode != http.StatusBadRequest && got.StatusCode != http.StatusNotFound {
				t.Fatalf("%s%s: %d %s", path, escaped, got.StatusCode, got.Body)
			}
		}
	})
}

// A journal entry and an event of the API have exactly the same fields.
func TestEventsAreJournalEntries(t *testing.T) {
	e := signalbox.Entry{
		Seq: 1, At: time.Date(2025, 1, 17, 10, 0, 0, 0, time.UTC), Kind: "finish", QueueID: "q", State: "failed", Reason: "lost", Message: "m",
		Queue: "work", Agent: "a", Fence: 2, Attempts: 3, Source: "cli", By: "me", Owner: "user:someone", Schedule: "nightly", RetryOf: "queue-1", Account: "claude-1",
	}
	for i := range reflect.ValueOf(e).NumField() {
		if reflect.ValueOf(e).Field(i).IsZero() {
			t.Errorf("fill in %s", reflect.TypeOf(e).Field(i).Name)
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var event api.Event
	if err := httpapi.Decode(data, &event); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(event)
	if err != nil || !bytes.Equal(again, data) {
		t.Errorf("%s\n%s, %v", again, data, err)
	}
}
