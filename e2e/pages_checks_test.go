package e2e_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// The page of a task shows its checks, and the output of failed ones, as text.
func TestTheChecksOfATask(t *testing.T) {
	s := newStage(t, "coder")
	two := 2
	id := s.left(1, func(r *signalbox.Result) {
		r.Checked = &signalbox.Checked{State: signalbox.CheckFailed, Rounds: 3, Results: []signalbox.CheckResult{
			{Name: "test", State: signalbox.CheckFailed, ExitCode: &two, Seconds: 61, Output: "FAIL <img src=x onerror=alert(1)>\n" + strings.Repeat("line\n", 100)},
			{Name: "lint", State: signalbox.CheckPassed, Seconds: 1, Output: "all is well"},
			{Name: "slow", State: signalbox.CheckTimeout, Seconds: 600},
		}}
	})
	p := s.open("/ui/tasks/" + id)
	p.showsIn(".card-head", "Checks failed after 3 rounds")
	p.until("each check is there", `(() => { const all = [...document.querySelectorAll(".check")].map((e) => e.textContent);
		return all.length === 3 && all[0].includes("test failed") && all[0].includes("exit 2") && all[0].includes("<img src=x") && all[1].includes("lint passed") && !all[1].includes("all is well") && all[2].includes("slow ran out of time"); })()`)
	p.until("markup is text, and a long output is folded", `!document.querySelector(".check img") && [...document.querySelectorAll(".check button")].some((e) => e.textContent.includes("Show all of it"))`)

	id = s.left(2, func(r *signalbox.Result) {
		r.Checked = &signalbox.Checked{State: signalbox.CheckUnavailable, Message: "signalbox trust FILE"}
	})
	p.goTo("/ui/tasks/" + id)
	p.showsIn(".card-head", "Checks unchecked")
	p.until("the remedy is shown", `[...document.querySelectorAll(".card")].some((e) => e.textContent.includes("signalbox trust FILE"))`)
}
