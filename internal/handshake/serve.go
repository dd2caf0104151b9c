package handshake

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/signalbox-ai/signalbox/api"
)

// maxAsked bounds the body of a question in bytes.
const maxAsked = 4 << 10

// Read reads a question.
func Read(w http.ResponseWriter, r *http.Request) (q api.ProveRequest, err error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsked))
	if err == nil {
		err = json.Unmarshal(data, &q)
	}
	return q, err
}

// Status is the HTTP status of an outcome.
func (o Outcome) Status() int {
	switch o {
	case Proved:
		return http.StatusOK
	case Relayed:
		return http.StatusConflict
	}
	return http.StatusUnauthorized
}

// Serve answers questions for the proof of one token, and has next serve the
// rest.
func Serve(token string, next http.Handler) http.Handler {
	key := KeyOf(token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			next.ServeHTTP(w, r)
			return
		}
		q, err := Read(w, r)
		if err != nil {
			http.Error(w, "want a question for a proof", http.StatusBadRequest)
			return
		}
		proof, outcome := Answer(r, q, key)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(outcome.Status())
		_ = json.NewEncoder(w).Encode(proof)
	})
}
