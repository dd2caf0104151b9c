package httpio

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// The headers with which an agent names itself and its execution.
const (
	SourceAgentHeader = "X-Source-Agent"
	ExecutionHeader   = "X-Signalbox-Execution"
)

// ForwardedHeader names the director that makes a request on behalf of a caller. Such
// a request is not forwarded again, so that two directors that take each other for the
// holder do not forward for ever. A client that sets it gets only what this director
// knows itself.
const ForwardedHeader = "Signalbox-Forwarded"

// Outgoing is a request of a director to this API, at itself or at another director.
type Outgoing struct {
	Method, Path string
	Query        url.Values
	Header       map[string]string
	Body         any // sent as JSON; nil: none
}

// Request returns the request for an address, without credentials.
func (q Outgoing) Request(ctx context.Context, at string) (*http.Request, error) {
	if q.Body == nil {
		return http.NewRequestWithContext(ctx, q.Method, at, http.NoBody)
	}
	data, err := json.Marshal(q.Body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, at, bytes.NewReader(data))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}
