package stores_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/stores"
)

// The same random histories must give the same results on all stores, answer by answer and read by read,
// played by two processes in turn if they can share the store.
func TestHistoriesAreTheSameOnAllStores(t *testing.T) {
	soak.Histories(t, 3, 500)
	var open []func(*testing.T) store.Store
	for _, kind := range stores.Kinds {
		open = append(open, func(t *testing.T) store.Store { return stores.OpenTwice(t, kind) })
	}
	storetest.Compare(t, open...)
}
