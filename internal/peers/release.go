package peers

import "slices"

// release gives up agents asynchronously; what is their state until then.
func (p *Peers) release(agents []string, what releaseState) {
	p.mu.Lock()
	agents = slices.DeleteFunc(agents, func(a string) bool { return !p.held[a] })
	for _, a := range agents {
		delete(p.held, a)
		p.released[a] = what
	}
	p.mu.Unlock()
	if len(agents) == 0 {
		return
	}
	p.releasing.Go(func() {
		p.o.Lost(agents)
		p.mu.Lock()
		for _, a := range agents {
			if p.released[a] == handingOver {
				p.released[a] = handedOver
			} else {
				delete(p.released, a)
			}
		}
		p.mu.Unlock()
		p.requestBeat()
	})
}

// applyHoldings applies the answer to a beat: which of the requested agents are ours, and
// that the dropped ones are not.
func (p *Peers) applyHoldings(asked, taken, dropped []string, lapsed bool) {
	ours := make(map[string]bool, len(taken))
	for _, a := range taken {
		ours[a] = true
	}
	p.release(slices.DeleteFunc(slices.Clone(asked), func(a string) bool { return ours[a] }), releasing) // held by others
	p.mu.Lock()
	for _, a := range dropped {
		delete(p.released, a)
	}
	if lapsed { // everything else is free
		for a, what := range p.released {
			if what == handedOver && !ours[a] {
				delete(p.released, a)
			}
		}
	}
	var gained []string
	for _, a := range taken {
		if !p.held[a] && p.released[a] == 0 {
			p.held[a] = true
			gained = append(gained, a)
		}
	}
	if len(gained) > 0 {
		p.wanting = false
	}
	p.mu.Unlock()
	if len(gained) > 0 {
		p.log.Info("agents taken", "agents", len(gained))
		p.o.Gained(gained)
	}
}
