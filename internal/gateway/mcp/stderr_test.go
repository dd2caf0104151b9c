package mcp_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// TestStderrLoggingIsRateLimited: each line is either logged or counted.
func TestStderrLoggingIsRateLimited(t *testing.T) {
	t.Parallel()
	const lines = 5000
	h := ready(t, child("raw"), mcp.Options{})
	begin := time.Now()
	h.must("a", do("chatter", map[string]any{"Size": lines}))
	counted := regexp.MustCompile(`left out" server=srv lines=(\d+)`)
	testkit.Wait(t, "each line is logged or counted", func() bool {
		log := h.log.String()
		logged, left := strings.Count(log, "this is line"), 0
		for _, m := range counted.FindAllStringSubmatch(log, -1) {
			n, _ := strconv.Atoi(m[1])
			left += n
		}
		if most := 100 * (2 + int(time.Since(begin).Seconds())); logged > most {
			t.Fatalf("%d lines are in the log, want at most %d", logged, most)
		}
		return logged+left == lines && left > 0
	})
}
