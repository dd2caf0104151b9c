package redis_test

import (
	"bytes"

	"github.com/signalbox-ai/signalbox/internal/chaos"
)

// cutAt cuts off the next client that says mark, before the server has it or,
// with arrives, when it has answered. What was said comes out of the channel.
func cutAt(p *chaos.Proxy, mark string, arrives bool) <-chan []byte {
	fault := chaos.DropBefore
	if arrives {
		fault = chaos.DropAfter
	}
	sent := make(chan []byte, 1)
	p.Strike(fault, func(said []byte) bool {
		struck := bytes.Contains(said, []byte(mark))
		if struck {
			sent <- bytes.Clone(said)
		}
		return struck
	})
	return sent
}
