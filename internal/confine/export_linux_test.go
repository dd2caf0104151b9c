package confine

// Reap is what the keeper does now and then.
func (h *Host) Reap() { h.reap() }

var ChildDied = childDied
