package store

// The sorts of slots: those for isolated executions are counted and numbered
// apart from the others.
const (
	CommonSlots = iota
	IsolatedSlots
	SlotSorts // how many sorts there are
)

// SlotSort is the sort of slots that are for isolated executions, or are not.
func SlotSort(isolated bool) int {
	if isolated {
		return IsolatedSlots
	}
	return CommonSlots
}
