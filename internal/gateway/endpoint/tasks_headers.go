package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// readBody reads the body of a request, and again for who reads on. It has
// answered those that it says no of: what is too large, and what gives a member
// twice, of which a program on the way may have gone by the other one. What else
// is wrong, the SDK says in words of its own, and a tool of its arguments.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if r.Method != http.MethodPost || r.Body == nil {
		return nil, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "the request is too large")
		return nil, false
	case err != nil:
		refuse(w, http.StatusBadRequest, "the request could not be read")
		return nil, false
	}
	var wrong *strictjson.Error
	if _, err := strictjson.Parse(body); errors.As(err, &wrong) && wrong.What == strictjson.Twice && !strings.Contains(wrong.Path, "params.arguments.") {
		refuse(w, http.StatusBadRequest, wrong.Error())
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

// aboutTasks looks at a request for what of tasks the SDK does not look at. It
// has answered those that it says no of.
func aboutTasks(from *request, r *http.Request, body []byte) bool {
	switch r.Header.Get(methodHeader) { // the SDK sees to it that the body says so too
	case methodListen:
		from.listen = listenOf(body)
	case methodGetTask, methodUpdateTask, methodCancelTask:
		return routedRight(from.answer, r.Header.Get(nameHeader), body)
	}
	return true
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
