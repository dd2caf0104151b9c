package httpio

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// The headers in which an agent says who it is and in which execution.
const (
	SourceAgentHeader = "X-Source-Agent"
	ExecutionHeader   = "X-Signalbox-Execution"
)

// Outgoing is a request that a director makes of this API, at itself or at
// another director.
type Outgoing struct {
	Method, Path string
	Query        url.Values
	Header       map[string]string
	Body         any // sent as JSON; nil: none
}

// Request is the request at an address, without who asks.
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
