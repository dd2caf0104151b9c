package httpio

import (
	"net/http"
	"strings"
	"time"
)

// RequestIDHeader is the header with the id of a request. Answers and log lines repeat
// it.
const RequestIDHeader = "X-Request-Id"

// Recorder is a ResponseWriter that records the answer.
type Recorder struct {
	http.ResponseWriter
	Status int    // 0: no answer yet
	Route  string // name in the route table; "": none
	begun  time.Time
}

// NewRecorder returns a recorder that writes to w.
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

// begins records the first status, and sets the write deadline. A long answer extends the
// deadline before each write.
func (w *Recorder) begins(status int) {
	if w.Status == 0 {
		w.Status = status
		ExtendWriteDeadline(w.ResponseWriter)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// NoteRoute records the route of a request.
func NoteRoute(w http.ResponseWriter, name string) {
	if rec, ok := w.(*Recorder); ok {
		rec.Route = name
	}
}

// ExtendWriteDeadline sets the deadline for the next write. It does nothing for a writer
// without deadlines, as in tests.
func ExtendWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(WriteTimeout))
}

// Took is how long the answer took; -1 for streams and long polls, whose duration the
// caller determines.
func (w *Recorder) Took(r *http.Request) time.Duration {
	if w.Status == http.StatusSwitchingProtocols || strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || strings.Contains(r.URL.RawQuery, "wait=") {
		return -1
	}
	return time.Since(w.begun)
}

// HasAnswered reports whether an answer was started already.
func HasAnswered(w http.ResponseWriter) bool {
	rec, ok := w.(*Recorder)
	return ok && rec.Status != 0
}
