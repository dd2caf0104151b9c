package httpio

import (
	"net/http"
	"strings"
	"time"
)

// RequestIDHeader carries the id of a request, which answers and log lines repeat.
const RequestIDHeader = "X-Request-Id"

// Recorder notes what was answered.
type Recorder struct {
	http.ResponseWriter
	Status int    // 0: nothing yet
	Route  string // its name in the route table; "": none took the request
	begun  time.Time
}

// NewRecorder records what is written to w, from now on.
func NewRecorder(w http.ResponseWriter) *Recorder {
	return &Recorder{ResponseWriter: w, begun: time.Now()}
}

func (w *Recorder) WriteHeader(status int) {
	w.begins(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *Recorder) Write(b []byte) (int, error) {
	w.begins(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// begins notes the first status, and bounds how long an answer may take to be
// taken, whoever writes it; one that lasts extends that for each of its writes.
func (w *Recorder) begins(status int) {
	if w.Status == 0 {
		w.Status = status
		ExtendWriteDeadline(w.ResponseWriter)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// NoteRoute notes the route that took a request.
func NoteRoute(w http.ResponseWriter, name string) {
	if rec, ok := w.(*Recorder); ok {
		rec.Route = name
	}
}

// ExtendWriteDeadline bounds how long the next write may take. A writer without
// deadlines, as in tests, has none to bound.
func ExtendWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(WriteTimeout))
}

// Took is how long the answer took; -1 where that is for the caller to say: of
// streams, and of polls that wait.
func (w *Recorder) Took(r *http.Request) time.Duration {
	if w.Status == http.StatusSwitchingProtocols || strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || strings.Contains(r.URL.RawQuery, "wait=") {
		return -1
	}
	return time.Since(w.begun)
}

// HasAnswered reports whether there is an answer already.
func HasAnswered(w http.ResponseWriter) bool {
	rec, ok := w.(*Recorder)
	return ok && rec.Status != 0
}
