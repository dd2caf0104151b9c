package verbs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/model"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestContractWithMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newServer(t).open(t, verbs.Options{}) })
}

func TestFullOfSchedules(t *testing.T) {
	s := newServer(t).open(t, verbs.Options{})
	storetest.RunFull(t, s, func(rows []signalbox.Schedule) error {
		for _, row := range rows {
			if _, err := s.PutSchedule(t.Context(), row, nil, signalbox.Entry{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Random histories must give the same results as on the reference.
func TestCompareWithMemory(t *testing.T) {
	compare(t, func(t *testing.T) store.Store { return newServer(t).open(t, verbs.Options{}) })
}

// Unloaded rows are loaded when they are needed.
func TestCompareWithoutMemory(t *testing.T) {
	compare(t, func(t *testing.T) store.Store { return newServer(t).open(t, verbs.Forgetful(verbs.Options{})) })
}

// Faults that a retry solves have no visible effect.
func TestCompareWithFaults(t *testing.T) {
	compare(t, func(t *testing.T) store.Store {
		srv := newServer(t)
		s := srv.open(t, verbs.Options{})
		calls := 0
		srv.setFault(func(call string, _ *verbs.Delta) fault {
			if call != "commit" {
				return works
			}
			if calls++; calls%3 == 0 {
				return []fault{moved, unknownStored, unknownLost}[calls/3%3]
			}
			return works
		})
		return s
	})
}

func compare(t *testing.T, open func(t *testing.T) store.Store) {
	soak.Histories(t, 10, 5000)
	storetest.Compare(t, func(*testing.T) store.Store { return model.New(model.Options{}) }, open)
}
