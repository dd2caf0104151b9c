package view

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// UsageSums is the API form of the sums of a usage row.
func UsageSums(u *signalbox.Usage) api.UsageSums {
	return api.UsageSums{
		Runs: u.Runs, Failed: u.Failed, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CostUSD: u.USD(), RunSeconds: float64(u.RunMS) / 1000,
	}
}

// tokens is nil if no tokens were reported.
func tokens(input, output int64) *api.TokenUsage {
	if input == 0 && output == 0 {
		return nil
	}
	return &api.TokenUsage{Input: input, Output: output}
}
