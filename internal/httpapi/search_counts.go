package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// maxCounts is how many queries are counted at once.
const maxCounts = 40

// keys is GET /api/search/keys.
func (h *searchHandler) keys(w http.ResponseWriter, _ *http.Request) error {
	out := api.SearchKeys{Sorts: signalbox.SortKeys()}
	for _, k := range signalbox.QueryKeys() {
		out.Keys = append(out.Keys, api.SearchKey{Key: k.Name, Text: k.Text, Values: k.Values, Examples: k.Examples})
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// counts is POST /api/search/counts. One scan counts for all queries.
func (h *searchHandler) counts(w http.ResponseWriter, r *http.Request) error {
	var req api.SearchCountsRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	if len(req.Queries) > maxCounts {
		return signalbox.Invalid("queries", "at most %d queries are counted at once, not %d", maxCounts, len(req.Queries))
	}
	out := api.SearchCounts{Counts: make([]api.SearchCount, len(req.Queries))}
	queries := make([]signalbox.Query, len(req.Queries))
	for i, text := range req.Queries {
		q, err := signalbox.ParseQuery(text, h.engine.Now())
		var wrong *signalbox.Error
		if errors.As(err, &wrong) {
			named := *wrong
			named.Field = "queries"
			return &named
		}
		queries[i], out.Counts[i].Query = q, q.String()
	}
	who := access.CallerOf(r).Who
	s := store.Scan{
		Match: who.SeesTask,
		MayMatch: func(state signalbox.State) bool {
			return slices.ContainsFunc(queries, func(q signalbox.Query) bool { return q.MatchesState(state) })
		},
		Queues: []string{""}, Budget: searchRows, PageSize: func() int { return httpio.MaxLimit },
	}
	var oldest time.Time // end of the last scanned task
	err := s.Run(r.Context(), h.engine.Read(), store.ScanCursor{}, func(t *signalbox.Task, _ store.ScanCursor) bool {
		for i := range queries {
			if queries[i].Matches(t) {
				out.Counts[i].Total++
			}
		}
		oldest = t.EndedAt
		return true
	})
	if err != nil {
		return err
	}
	for i := range queries {
		out.Counts[i].Approximate = s.Truncated && mayBeBeyond(&queries[i], s.At.Phase, oldest)
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// mayBeBeyond reports whether a query may match tasks after the point where a scan was
// truncated: in that phase, whose last scanned task ended at oldest, or in a later phase.
func mayBeBeyond(q *signalbox.Query, phase string, oldest time.Time) bool {
	for _, state := range signalbox.States() {
		beyond := state.Terminal() || state.Waiting() && phase == store.PhaseWaiting
		if since, _ := q.Span(); beyond && q.MatchesState(state) && (phase != store.PhaseEnded || since.IsZero() || !oldest.Before(since)) {
			return true
		}
	}
	return false
}
