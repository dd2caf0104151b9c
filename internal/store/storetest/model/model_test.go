package model_test

import (
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return model.New(model.Options{ID: "test"}) })
}

func TestFullOfSchedules(t *testing.T) {
	s := model.New(model.Options{})
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
type kept struct{ *model.Store }

func (kept) Close() error { return nil }

func TestDurableCasesCanPass(t *testing.T) {
	var folders sync.Map
	storetest.RunDurable(t, func(_ *testing.T, dir string) store.Store {
		s, _ := folders.LoadOrStore(dir, kept{model.New(model.Options{ID: dir})})
		return s.(store.Store)
	})
}
