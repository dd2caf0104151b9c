package mcp

import (
	"bytes"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxSkimmed bounds what is read of one message without being kept.
const maxSkimmed = 1 << 30

var errEndless = errors.New("it sent a message without an end")

// gather collects one message, and no more of it than the limit.
type gather struct {
	tap     *tap
	deliver func(jsonrpc.Message)
	buf     []byte
	skim    *scan // not nil: the message is beyond the limit
	told    bool  // the call it answers has been told
	skimmed int64
}

// add takes some more of the message.
func (g *gather) add(p []byte) {
	if g.skim == nil && len(g.buf)+len(p) <= maxMessage {
		g.buf = append(g.buf, p...)
		return
	}
	if g.skim == nil {
		g.skim = &scan{}
		g.skim.feed(g.buf)
		g.buf = nil
	}
	g.skim.feed(p)
	g.tell()
	g.skimmed += int64(len(p))
	if g.skimmed > maxSkimmed {
		g.tap.bad(errEndless)
	}
}

// tell fails the call that the message answers as soon as that is known.
func (g *gather) tell() {
	id, ok := g.skim.answers()
	if !ok || g.told {
		return
	}
	g.told = true
	if msg := g.tap.tooLarge(id); msg != nil {
		g.deliver(msg)
	}
}

// end is the end of the message.
func (g *gather) end() {
	if g.skim == nil {
		if msg := bytes.TrimSpace(g.buf); len(msg) > 0 {
			g.take(msg)
		}
	} else if !g.told {
		g.tap.log.Warn("a message is larger than 16 MiB and was skipped", "server", g.tap.name)
	}
	g.skim, g.told, g.skimmed = nil, false, 0
	g.buf = g.buf[:0]
	if cap(g.buf) > 1<<20 {
		g.buf = nil
	}
}

// take hands a message to the tap, or each of a batch, as servers of protocol
// version 2025-03-26 may send them.
func (g *gather) take(data []byte) {
	if data[0] != '[' {
		if msg := g.tap.incoming(data); msg != nil {
			g.deliver(msg)
		}
		return
	}
	batch, err := elements(data)
	if err != nil || len(batch) == 0 {
		g.tap.skip(data)
		return
	}
	for _, one := range batch {
		if msg := g.tap.incoming(one); msg != nil {
			g.deliver(msg)
		}
	}
}

// Write takes what a program prints: a message each line.
func (g *gather) Write(p []byte) (int, error) {
	rest := p
	for {
		line, after, found := bytes.Cut(rest, []byte{'\n'})
		g.add(line)
		if !found {
			return len(p), nil
		}
		g.end()
		rest = after
	}
}
