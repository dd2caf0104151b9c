package agentd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// decode reads a JSON body strictly. Where optional, an absent body is as
// good as {}.
func (d *Daemon) decode(w http.ResponseWriter, req *http.Request, into any, optional bool) *refusal {
	if optional && req.ContentLength == 0 {
		return nil
	}
	if !isJSON(req.Header.Get("Content-Type")) {
		return refuse(http.StatusUnsupportedMediaType, "validation_error", "Content-Type must be application/json")
	}
	// The deadline is for the body alone; an answer may take as long as ?wait.
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(10 * time.Second)) // not every writer has one
	defer ctl.SetReadDeadline(time.Time{})
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, d.cfg.BodyLimit))
	if err == nil {
		_, err = strictjson.Parse(body)
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		err = dec.Decode(into)
	}
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLong):
		return refuse(http.StatusRequestEntityTooLarge, "too_large", "the body is larger than %d bytes", tooLong.Limit)
	}
	return invalid("the body is not what is expected here: %v", err)
}

func reply(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"internal_error","message":"the answer could not be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the caller may have gone
}

func replyError(w http.ResponseWriter, err error) {
	var ref *refusal
	if !errors.As(err, &ref) {
		ref = refuse(http.StatusInternalServerError, "internal_error", "%v", fmt.Errorf("the agent could not answer: %w", err))
	}
	reply(w, ref.status, ref.body)
}
