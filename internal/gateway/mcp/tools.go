package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

const (
	maxTools    = 1000 // maximum offered by one server
	maxListed   = 100_000
	maxPages    = 1000
	maxName     = 128
	listTimeout = 30 * time.Second
)

// tool is an offered tool, with the server's name for it.
type tool struct {
	gateway.Tool
	name string
}

// list lists the tools, page by page, unchanged.
func (i *instance) list() ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(i.ctx, listTimeout)
	defer cancel()
	var all []json.RawMessage
	params := &sdk.ListToolsParams{}
	size := 0
	for range maxPages {
		page, err := i.page(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Tools {
			size += len(raw)
		}
		if size > maxMessage {
			return nil, errors.New("its list of tools is larger than 16 MiB")
		}
		if all = append(all, page.Tools...); len(all) > maxListed {
			return nil, fmt.Errorf("it lists more than %d tools", maxListed)
		}
		if page.Next == "" || page.Next == params.Cursor {
			return all, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.Next}
	}
	return nil, fmt.Errorf("it lists its tools on more than %d pages", maxPages)
}

type page struct {
	Tools []json.RawMessage `json:"tools"`
	Next  string            `json:"nextCursor"`
}

// page requests one page. The SDK sees the page too, because it needs some parameters to
// call a tool over HTTP; it need not understand all of it.
func (i *instance) page(ctx context.Context, params *sdk.ListToolsParams) (page, error) {
	r := newReply()
	r.passOn = true
	defer i.interceptor.forget(r)
	_, err := i.session.ListTools(withReply(ctx, r), params)
	result, rpcError, fault, got := r.answer()
	var p page
	switch {
	case fault != nil:
		if r.got404.Load() {
			notify(i.probeNow) // checks whether the whole session is lost
		}
		return p, fault
	case rpcError != nil:
		return p, fmt.Errorf("it does not list its tools: %w", i.protocolError(rpcError))
	case !got && i.ctx.Err() != nil:
		return p, context.Cause(i.ctx)
	case !got && ctx.Err() != nil:
		return p, errors.New("it does not list its tools in time")
	case !got && err != nil:
		return p, err
	case json.Unmarshal(result, &p) != nil:
		return p, errors.New("its list of tools cannot be read")
	}
	return p, nil
}

// offer selects and renames the tools to offer. It skips invalid tools: clients would
// reject the whole list because of one.
func (p *Provider) offer(listed []json.RawMessage) (map[string]tool, error) {
	out := map[string]tool{}
	var names []string
	for _, raw := range listed {
		own, err := check(raw)
		if err != nil {
			p.log.Warn("a tool is left out", "server", p.server.Name, "tool", fmt.Sprintf("%.80q", own), "reason", err.Error())
			continue
		}
		names = append(names, own)
		if !p.allows(own) {
			continue
		}
		t := tool{name: own, Tool: gateway.Tool{
			Name: p.nameOf(own), Server: p.server.Name, Kind: gateway.KindMCP,
			Queue: p.queueOf(own), Timeout: p.timeout(),
		}}
		if _, twice := out[t.Name]; twice {
			p.log.Warn("a tool is left out", "server", p.server.Name, "tool", own, "reason", "the server lists it twice; the first one counts")
			continue
		}
		if t.Definition, err = rename(raw, t.Name); err != nil {
			return nil, err
		}
		if out[t.Name] = t; len(out) > maxTools {
			return nil, fmt.Errorf("it has more than %d tools: name those to be offered in toolsAllowed", maxTools)
		}
	}
	p.unmatched(names)
	return out, nil
}

// unmatched reports configured names that match no tool; otherwise a typo would go
// unnoticed.
func (p *Provider) unmatched(names []string) {
	tell := func(key, name string, is func(own string) bool) {
		if !slices.ContainsFunc(names, is) {
			p.log.Warn("the configuration names a tool that the server does not have", "server", p.server.Name, "key", key, "tool", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.server.ToolQueues)) {
		tell("toolQueues", name, func(own string) bool { return own == name })
	}
	for _, name := range p.server.ToolsAllowed {
		tell("toolsAllowed", name, func(own string) bool { return signalbox.MatchTool(name, own) })
	}
	for _, name := range p.server.ToolsDenied {
		tell("toolsDenied", name, func(own string) bool { return signalbox.MatchTool(name, own) })
	}
}

// nameOf returns the offered name of a tool.
func (p *Provider) nameOf(own string) string {
	if p.opts.OwnNames {
		return own
	}
	return p.server.Name + "__" + own
}

// check returns a tool's own name, and an error if clients would not accept its definition.
// Clients reject a whole list because of one invalid schema.
func check(raw json.RawMessage) (string, error) {
	var t struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations map[string]any  `json:"annotations"`
		Meta        map[string]any  `json:"_meta"`
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return "", errors.New("it is not an object")
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t.Name, errors.New("a part of it has the wrong type")
	}
	switch {
	case t.Name == "":
		return "", errors.New("it has no name")
	case len(t.Name) > maxName:
		return t.Name, fmt.Errorf("its name is longer than %d characters", maxName)
	case strings.ContainsFunc(t.Name, func(r rune) bool { return !nameRune(r) }):
		return t.Name, errors.New("only letters, digits and _ - . / : may be in a name")
	case !isObjectSchema(t.Input):
		return t.Name, errors.New(`its inputSchema is not a JSON Schema of type "object"`)
	case notNull(t.Output) != nil && !isObjectSchema(t.Output):
		return t.Name, errors.New(`its outputSchema is not a JSON Schema of type "object"`)
	}
	return t.Name, nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:", r)
}

func isObjectSchema(raw json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &s) == nil && s.Type == "object"
}

// rename replaces the name in a Tool object and leaves every other byte unchanged.
func rename(raw json.RawMessage, name string) (json.RawMessage, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	var out []byte
	from := 0
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil { // {
		return nil, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if key == "name" {
			end := int(dec.InputOffset())
			out = append(append(out, raw[from:end-len(value)]...), quoted...)
			from = end
		}
	}
	return append(out, raw[from:]...), nil
}

// allows reports whether a tool is offered: it is in toolsAllowed, or that is empty, and it
// is not in toolsDenied.
func (p *Provider) allows(own string) bool {
	fits := func(pattern string) bool { return signalbox.MatchTool(pattern, own) }
	return (len(p.server.ToolsAllowed) == 0 || slices.ContainsFunc(p.server.ToolsAllowed, fits)) &&
		!slices.ContainsFunc(p.server.ToolsDenied, fits)
}

func (p *Provider) queueOf(own string) string {
	if q := p.server.ToolQueues[own]; q != "" {
		return q
	}
	return p.server.Queue
}

func (p *Provider) timeout() time.Duration {
	if p.server.RequestTimeout > 0 {
		return p.server.RequestTimeout
	}
	return gateway.DefaultTimeout
}
