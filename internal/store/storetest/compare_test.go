package storetest_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
)

func openMemory(*testing.T) store.Store { return memory.New(memory.Options{}) }

// The memory store must at least agree with itself, which finds anything in
// it that hangs on chance, and proves that the histories get on.
func TestCompareMemory(t *testing.T) {
	storetest.Compare(t, openMemory, openMemory)
}
