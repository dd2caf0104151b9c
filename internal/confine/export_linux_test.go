package confine

// Reap runs the keeper's periodic collection.
func (h *Host) Reap() { h.reap() }

var ChildDied = childDied
