package signalbox_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

func TestWhatAnAgentSaysOfChecksIsBounded(t *testing.T) {
	c := signalbox.Checked{State: "great", Rounds: -1, Message: "a\nb\x1b"}
	for range 30 {
		c.Results = append(c.Results, signalbox.CheckResult{
			Name: strings.Repeat("é", 100), State: signalbox.CheckTimeout, Seconds: math.NaN(), Output: strings.Repeat("\xff", 10_000) + "é\tend\n",
		})
	}
	c.Sanitize()
	if c.State != signalbox.CheckUnavailable || c.Rounds != 0 || c.Message != "a\uFFFDb\uFFFD" || len(c.Results) != signalbox.MaxChecks {
		t.Fatalf("%+v", c)
	}
	one := c.Results[0]
	if one.Name != strings.Repeat("é", 32) || one.State != signalbox.CheckTimeout || one.Seconds != 0 || len(one.Output) > signalbox.MaxCheckOutput || !utf8.ValidString(one.Output) || !strings.HasSuffix(one.Output, "end\n") {
		t.Errorf("%+v", one)
	}
	if s := c.Summary(); s.Results[0].Output != "" || c.Results[0].Output == "" || s.State != c.State {
		t.Errorf("%+v", s)
	}
	if (*signalbox.Checked)(nil).Summary() != nil || (*signalbox.Checked)(nil).Size() != 0 {
		t.Error("nil")
	}
	r := signalbox.Result{Checked: &c}
	other := r.Clone()
	other.Checked.Results[0].Name = "?"
	if c.Results[0].Name == "?" || r.Size() != c.Size() {
		t.Error("a clone shares its results")
	}
}
