package e2e_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-ai/signalbox/client"
)

// Similar failures are one entry of attention, which links to exactly these tasks and
// retries them all; a user's pause is a note.
func TestFailuresAlikeAreOneEntryOfAttention(t *testing.T) {
	s := newStage(t, "writer")
	s.speaker("builder", `
echo start
echo "jobs.errors.ChargeError: card_declined (code $(date +%N))"
exit 3
`)
	p := s.open("/ui/")
	p.showsIn(".attention", "All is well")
	for i := range 3 {
		s.becomes(s.task("builder", fmt.Sprint("bill order ", i)), "failed")
	}
	p.showsIn(".attention-list", "3 tasks failed alike on builder: jobs.errors.ChargeError: card_declined")
	p.click(".attention-list a", "Open")
	p.showsIn(".page-head", "3 tasks")
	status, err := s.c.Status(s.ctx())
	if err != nil || len(status.Health.Attention) != 1 || status.Health.Attention[0].Count != 3 {
		t.Fatalf("%+v, %v", status.Health, err)
	}
	found, err := s.c.Search(s.ctx(), status.Health.Attention[0].Query, client.SearchOptions{})
	if err != nil || found.Total != 3 {
		t.Errorf("%+v, %v", found, err)
	}
	p.goTo("/ui/")
	p.click(".attention-list button", "Retry all 3")
	p.click("dialog button", "Retry 3 tasks")
	s.until("each is retried", func() bool {
		found, err := s.c.Search(s.ctx(), "agent:builder", client.SearchOptions{})
		return err == nil && found.Total == 6
	})
	s.want(0, "pause", "agent:writer", "--reason", "new disk", "--director", s.d.url)
	p.showsIn(".attention-notes", "writer is paused by")
	p.click(".attention-notes button", "Resume")
	p.until("the note is gone", `!document.querySelector(".attention-notes")`)
}
