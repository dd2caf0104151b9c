package seal_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/seal"
)

func TestRunTokenNamesItsExecution(t *testing.T) {
	s, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.New([]byte(strings.Repeat("k", seal.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	const id = "queue-01jh0000000000000000000000"
	token := s.RunToken(id, 7)
	if got, fence, ok := s.RunOf(token); got != id || fence != 7 || !ok {
		t.Errorf("the token is that of %q with fence %d, %v", got, fence, ok)
	}
	selector, mac, _ := strings.Cut(strings.TrimPrefix(token, seal.RunTokenPrefix), "_")
	for what, wrong := range map[string]string{
		"another key":       other.RunToken(id, 7),
		"another fence":     seal.RunTokenPrefix + id + ".8_" + mac,
		"no MAC":            seal.RunTokenPrefix + selector,
		"a cut MAC":         token[:len(token)-1],
		"another prefix":    "sbxt_" + selector + "_" + mac,
		"that of directors": s.DirectorsToken(),
		"nothing":           "",
	} {
		if got, _, ok := s.RunOf(wrong); ok {
			t.Errorf("%s: it is accepted as %q", what, got)
		}
	}
}
