package execution_test

import (
	"math"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// What an agent says that a run has used is believed within bounds, and stays known when a later
// reply says nothing of it.
func TestWhatARunHasUsedSoFar(t *testing.T) {
	var r execution.Run
	r.SetUsed(&api.TokenUsage{Input: 100, Output: 20}, 0.25)
	want := signalbox.Spent{InputTokens: 100, OutputTokens: 20, NanoUSD: 250_000_000}
	for _, nothing := range []float64{0, -1, math.NaN()} {
		if r.SetUsed(nil, nothing); r.Used != want {
			t.Errorf("after a cost of %v: %+v, want %+v", nothing, r.Used, want)
		}
	}
	r.SetUsed(&api.TokenUsage{Input: math.MaxInt64, Output: -5}, math.Inf(1))
	want = signalbox.Spent{InputTokens: signalbox.MaxRunTokens, NanoUSD: signalbox.MaxRunUSD * 1e9}
	if r.Used != want {
		t.Errorf("%+v, want %+v", r.Used, want)
	}
}
