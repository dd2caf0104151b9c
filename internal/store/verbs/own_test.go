package verbs_test

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// ownBackend is a backend that no other process writes to: it has no lock.
type ownBackend struct{ verbs.Backend }

func openOwn(t *testing.T, srv *server, o verbs.Options) store.Store {
	s, err := verbs.New(ctx, ownBackend{srv.connect()}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContractCustomBackend(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s := openOwn(t, newServer(t), verbs.Options{})
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

func TestCompareCustomBackend(t *testing.T) {
	for name, o := range map[string]verbs.Options{
		"": {}, "pipelined, forgetful": verbs.Pipelined(verbs.Forgetful(verbs.Options{})), "short turns": verbs.ShortTurns(verbs.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, func(t *testing.T) store.Store { return openOwn(t, newServer(t), o) })
		})
	}
}

// A store whose backend is not shared cannot be used by several directors.
func TestCustomBackendIsNotShared(t *testing.T) {
	s := openOwn(t, newServer(t), verbs.Options{})
	defer s.Close() //nolint:errcheck // nothing is kept
	if _, shared := s.(store.Shared); shared {
		t.Error("it says that several directors may share it")
	}
}
