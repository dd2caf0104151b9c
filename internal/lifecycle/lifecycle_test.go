package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type part struct {
	name string
	err  error
	log  *[]string
}

func (p part) Start(context.Context) error { *p.log = append(*p.log, "start "+p.name); return p.err }
func (p part) Stop()                       { *p.log = append(*p.log, "stop "+p.name) }

func TestStopIsInReverseOrderAndJoinsErrors(t *testing.T) {
	var log []string
	var g lifecycle.Group
	full, broken := errors.New("disk full"), errors.New("broken")
	g.Close("store", func() error { log = append(log, "close store"); return full })
	g.Close("file", func() error { return broken })
	if err := g.Start(t.Context(), part{"a", nil, &log}, part{"b", nil, &log}); err != nil {
		t.Fatal(err)
	}
	err := g.Stop()
	if !errors.Is(err, full) || !errors.Is(err, broken) || err.Error() != "file: broken\nstore: disk full" {
		t.Errorf("error %q", err)
	}
	if want := []string{"start a", "start b", "stop b", "stop a", "close store"}; !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
	if err := g.Stop(); err != nil || len(log) != 5 {
		t.Errorf("a second Stop: %v, %q", err, log)
	}
}

func TestOnlyWhatStartedIsStopped(t *testing.T) {
	var log []string
	var g lifecycle.Group
	failed := errors.New("no")
	if err := g.Start(t.Context(), part{"a", nil, &log}, part{"b", failed, &log}, part{"c", nil, &log}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if err := g.Stop(); err != nil {
		t.Error(err)
	}
	if want := []string{"start a", "start b", "stop a"}; !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
}

func TestStopEndsGoroutinesAndWaitsForThem(t *testing.T) {
	var g lifecycle.Group
	ended := false
	g.Go(context.Background(), func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	if err := g.Stop(); err != nil || !ended {
		t.Errorf("ended %v, error %v", ended, err)
	}
}
