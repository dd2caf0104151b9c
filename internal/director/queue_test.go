package director_test

import (
	"net/http"
	"testing"
)

func TestSubmitAnswersTheSeedsBody(t *testing.T) {
	b := newBox(t)
	got := b.submit(`{"prompt":"Task prompt here","model":"sonnet","timeout_seconds":1800,"session_id":"optional-session-id","source":"scheduler","source_job":"nightly-maintenance"}`)
	if got.Position != 1 || got.State != "pending" || got.QueueID == "" {
		t.Fatalf("%+v", got)
	}
	b.do("GET", "/api/queue/"+got.QueueID, "").want(t, http.StatusOK, nil)
}
