package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// The cost of runs is on the page, at the agent, in the list of tasks, on the command
// line and in the metrics, and is the same everywhere.
func TestUsageOnAllSurfaces(t *testing.T) {
	s := newStage(t, "coder", "writer")
	p := s.open("/ui/usage")
	p.showsIn("main .empty", "No run of the last 30 days reported tokens or costs.")

	s.completed(s.c, s.task("coder", "sleep 1ms, spend 0.25"))
	s.end(s.c, s.task("coder", "sleep 1ms, spend 0.5, fail"))
	written := s.completed(s.c, s.task("writer", "sleep 1ms, spend 1.25"))
	if written.CostUSD != 1.25 || written.TokenUsage == nil || written.TokenUsage.Input != 125_000 || written.Result.Model != "demo" {
		t.Errorf("the task has %+v", written)
	}
	if _, err := s.c.CreateSchedule(s.ctx(), api.NewSchedule{Name: "nightly", CronExpression: "0 3 * * *", Message: "sleep 1ms, spend 2", Agent: "writer"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.TriggerSchedule(s.ctx(), "nightly"); err != nil {
		t.Fatal(err)
	}
	got := s.usage(client.UsageOptions{By: "agent"}, 4)
	if got.Total.CostUSD != 4 || got.Total.Failed != 1 || got.Rows[0].Name != "writer" || got.Rows[0].CostUSD != 3.25 {
		t.Errorf("the sums are %+v", got)
	}

	p.goTo("/ui/usage")
	p.showsIn(".page-head", "$4.00 · 400K tokens in, 40K out · 4 runs · 1 failed")
	p.until("the chart is drawn", `document.querySelector(".card-days .chart canvas")`)
	p.until("and says what it shows", fmt.Sprintf(`document.querySelector(".card-days .chart").ariaLabel.includes(%s)`, jsText("$4.00 in all, most on "+got.To)))
	rows := `[...document.querySelectorAll(".usage-table tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("|"))`
	want := func(what string, list ...string) {
		t.Helper()
		p.until(what, fmt.Sprintf(`%s.join("\n") === %s`, rows, jsText(strings.Join(list, "\n"))))
	}
	want("by agent", "writer page of agent writer|81%|2 runs|0 failed|325K in|32.5K out|$3.25", "coder page of agent coder|19%|2 runs|1 failed|75K in|7.5K out|$0.7500")
	p.click(".card-usage .chip", "Schedules")
	p.at("/ui/usage?by=schedule")
	want("by schedule", "no schedule|50%|3 runs|1 failed|200K in|20K out|$2.00", "nightly|50%|1 run|0 failed|200K in|20K out|$2.00")
	p.click(".card-usage .chip", "Models")
	want("by model", "demo|100%|4 runs|1 failed|400K in|40K out|$4.00")

	// Figures link to the tasks behind them, names to the parts of the sum.
	p.click(".card-usage .chip", "Agents")
	p.click(".usage-table td.tone-bad a", "1")
	p.showsIn(".page-head", "1 task")
	p.showsIn(".table-tasks .col-cost", "$0.5000")
	p.goTo("/ui/usage")
	p.click(".usage-table th a", "coder")
	p.at("/ui/usage?by=model&agent=coder")
	p.showsIn(".page-head", "$0.7500 ·")
	p.click(".usage-range .chip", "7 days")
	p.at("/ui/usage?days=7&by=model&agent=coder")
	p.click(".usage-range .chip", "coder")
	p.at("/ui/usage?days=7&by=model")
	p.showsIn(".page-head", "$4.00 ·")
	p.goTo("/ui/agents/writer")
	p.showsIn(".card-spent", "$3.25")
	p.click(".card-spent a", "Usage")
	p.at("/ui/usage?agent=writer")

	out := s.want(0, "usage", "--by", "agent").out
	if lines := strings.Split(out, "\n"); len(lines) < 4 || !strings.HasPrefix(lines[1], "writer ") || !strings.Contains(lines[3], "4.0000") {
		t.Errorf("signalbox usage says\n%s", out)
	}
	_, text := s.ask(http.MethodGet, s.d.url+"/metrics", "")
	for _, line := range []string{`signalbox_usage_cost_usd_total{agent="writer"} 3.25`, `signalbox_usage_tokens_total{agent="coder",direction="input"} 75000`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// The sums survive a kill of the director, and the pruning of their tasks.
func TestUsageSurvivesACrash(t *testing.T) {
	s := newStage(t, "coder")
	s.completed(s.c, s.task("coder", "sleep 1ms, spend 0.25"))
	s.d.kill()
	s.start()
	s.completed(s.c, s.task("coder", "sleep 1ms, spend 0.5"))
	if got := s.usage(client.UsageOptions{}, 2); got.Total.CostUSD != 0.75 || len(got.Rows) == 0 {
		t.Errorf("the sums are %+v", got)
	}
}

// usage is the director's answer once so many runs are counted.
func (s *stage) usage(opts client.UsageOptions, runs int64) (got api.Usage) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d runs are counted", runs), func() bool {
		var err error
		if got, err = s.c.Usage(s.ctx(), opts); err != nil && client.Code(err) != string(signalbox.CodeUnavailable) {
			s.t.Fatal(err)
		}
		return got.Total.Runs == runs
	})
	return got
}
