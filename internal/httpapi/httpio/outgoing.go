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

// ForwardedHeader is on a request that a director makes on behalf of a caller,
// and names that director. Such a request is not passed on again, so that two
// directors of which each takes the other for the holder do not ask each other
// for ever. Whoever sets it without being a director gets what this director
// knows by itself.
const ForwardedHeader = "Signalbox-Forwarded"

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
