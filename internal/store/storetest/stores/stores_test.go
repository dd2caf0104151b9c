package stores_test

import (
	"flag"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/stores"
)

// The same random histories must look the same on all stores, answer by answer
// and read by read, by two processes in turn where they can share one.
func TestHistoriesAreTheSameOnAllStores(t *testing.T) {
	fewerHistories(t)
	var open []func(*testing.T) store.Store
	for _, kind := range stores.Kinds {
		open = append(open, func(t *testing.T) store.Store { return stores.OpenTwice(t, kind) })
	}
	storetest.Compare(t, open...)
}

// fewerHistories keeps a normal run short; -rapid.checks and SIGNALBOX_SOAK
// are for long ones.
func fewerHistories(t *testing.T) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks == nil || checks.Value.String() != checks.DefValue {
		return
	}
	n := soak.Pick("3", "500")
	if err := flag.Set("rapid.checks", n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", checks.DefValue) })
}
