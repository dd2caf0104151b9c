package memory_test

import (
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(memory.Options{ID: "test"}) })
}

// Random histories must give the same results as on the model.
func TestCompareWithModel(t *testing.T) {
	soak.Histories(t, 30, 5000)
	storetest.Compare(t,
		func(*testing.T) store.Store { return model.New(model.Options{}) },
		func(*testing.T) store.Store { return memory.New(memory.Options{}) })
}

func TestFullOfSchedules(t *testing.T) {
	s := memory.New(memory.Options{})
	storetest.RunFull(t, s, func(rows []signalbox.Schedule) error {
		for _, row := range rows {
			if _, err := s.PutSchedule(t.Context(), row, nil, signalbox.Entry{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// kept is a memory store that survives its Close, which shows that the cases about reopening can pass.
type kept struct{ *memory.Store }

func (kept) Close() error { return nil }

func TestDurableCasesCanPass(t *testing.T) {
	var folders sync.Map
	storetest.RunDurable(t, func(_ *testing.T, dir string) store.Store {
		s, _ := folders.LoadOrStore(dir, kept{memory.New(memory.Options{ID: dir})})
		return s.(store.Store)
	})
}
