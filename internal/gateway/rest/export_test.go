package rest

import "github.com/signalbox-ai/signalbox/internal/gateway"

// BuildForTest returns the request of a call.
func BuildForTest(p *Provider, call gateway.Call) (*Request, error) {
	_, a, err := p.find(call.Tool)
	if err != nil {
		return nil, err
	}
	return a.request(call)
}
