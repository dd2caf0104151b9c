package redis_test

import (
	"bytes"

	"github.com/signalbox-ai/signalbox/internal/chaos"
)

// cutAt breaks the next connection on which a client sends mark: before the server gets it or, with arrives,
// when it has answered. The sent bytes come from the channel.
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
