package e2e_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// Of many agents the working ones come first, and those that are down are folded
// into one line; a filter finds them all.
func TestManyAgentsAreFolded(t *testing.T) {
	s := newStage(t, "zoe")
	for i := range 10 {
		if _, err := s.c.RegisterAgent(s.ctx(), api.RegisterAgent{Name: fmt.Sprintf("away-%d", i), Kind: "other", URL: "http://127.0.0.1:9"}); err != nil {
			t.Fatal(err)
		}
	}
	s.running("zoe", "sleep 10m, upgrade the billing service")
	s.task("zoe", "sleep 10m, a chip with so many words that they would never fit into one row of a lane")
	p := s.open("/ui/")
	p.showsIn(".card-lanes .card-note", "1 working · 10 down")
	p.showsIn(".fold", "10 down")
	lanes := `[...document.querySelectorAll(".lane[aria-label^=Agent]")].map((l) => l.ariaLabel.slice(6))`
	p.until("only the lane of the agent that works is there", fmt.Sprintf(`String(%s) === "zoe"`, lanes))
	height := `Math.round(document.querySelector(".lane").getBoundingClientRect().height)`
	before := has[int](p, height)
	for i := range 4 {
		s.task("zoe", fmt.Sprintf("sleep 10m, number %d", i))
	}
	p.showsIn(".lane .chip-more", "+")
	if after := has[int](p, height); after != before {
		t.Errorf("the lane was %d px high and is %d", before, after)
	}
	p.click(".fold", "10 down")
	p.until("all have a lane, those that work first", fmt.Sprintf(`%[1]s.length === 11 && %[1]s[0] === "zoe"`, lanes))
	p.click(".fold", "10 down")
	p.fill("Filter agents", "away-7")
	p.until("the one that matches is there", fmt.Sprintf(`String(%s) === "away-7"`, lanes))
	p.fill("Filter agents", "billing")
	p.until("so is one by what it runs", fmt.Sprintf(`String(%s) === "zoe"`, lanes))
}
