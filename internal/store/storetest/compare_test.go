package storetest_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
)

func openModel(*testing.T) store.Store { return model.New(model.Options{}) }

// The model must at least agree with itself, which detects randomness in it, and shows that histories make
// progress.
func TestCompareModel(t *testing.T) {
	soak.Histories(t, 30, 100)
	storetest.Compare(t, openModel, openModel)
}
