package push

// Remembers looks whether the store has begun a new generation, and takes that
// in (OnDataLoss).
func (d *Dispatcher) Remembers() {
	if d.opts.Generation == nil {
		return
	}
	if now := d.opts.Generation(); d.generation.Swap(now) != now {
		d.OnDataLoss()
	}
}

// doubtful reports whether what was just claimed for an agent must not be sent:
// the claim itself may have been the one that found out that the store had
// lost something.
func (d *Dispatcher) doubtful(l *lane) bool {
	d.Remembers()
	d.mu.Lock()
	defer d.mu.Unlock()
	return l.offers.lostData()
}
