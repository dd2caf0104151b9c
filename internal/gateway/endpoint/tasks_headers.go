package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// aboutTasks looks at a request for what of tasks the SDK does not look at. It
// has answered those that it says no of.
func aboutTasks(from *request, r *http.Request) bool {
	method := r.Header.Get(methodHeader) // the SDK sees to it that the body says so too
	switch method {
	case methodListen, methodGetTask, methodUpdateTask, methodCancelTask:
	default:
		return true
	}
	if r.Body == nil {
		return true
	}
	w := from.answer
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			refuse(w, http.StatusRequestEntityTooLarge, "the request is too large")
		} else {
			refuse(w, http.StatusBadRequest, "the request could not be read")
		}
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if method == methodListen {
		from.listen = listenOf(body)
		return true
	}
	return routedRight(w, r.Header.Get(nameHeader), body)
}

// routedRight answers requests about tasks whose header Mcp-Name does not name
// the task: what is on the way may have gone by it. The SDK compares that header
// for its own methods only.
func routedRight(w http.ResponseWriter, name string, body []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			TaskID *string `json:"taskId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil || m.Params.TaskID == nil {
		return true // the SDK says what is wrong with it
	}
	var wrong string
	switch name {
	case *m.Params.TaskID:
		return true
	case "":
		wrong = "missing required Mcp-Name header: requests about a task carry its id there"
	default:
		wrong = "header mismatch: Mcp-Name is not the taskId of the body"
	}
	refuseWith(w, http.StatusBadRequest, m.ID, mcp.CodeHeaderMismatch, wrong)
	return false
}
