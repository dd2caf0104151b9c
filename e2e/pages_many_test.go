package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// Ten thousand tasks, in make test two thousand: only the visible rows exist,
// scrolling loads page after page, and a search answers.
func TestTenThousandTasks(t *testing.T) {
	many := soak.Pick(2_000, 10_000)
	s := newStage(t)
	s.d.stop()
	s.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "20000"
	s.start()
	s.crowd(many)
	found := s.submit(s.c, api.SubmitRequest{Prompt: "the needle in it"})
	p := s.open("/ui/tasks")
	p.showsIn(".page-head", fmt.Sprintf("%d,0", many/1000))
	rows := `document.querySelectorAll(".table-tasks .row").length`
	p.until("rows are there", rows+" > 5")
	nodes := `document.querySelectorAll("*").length`
	if n := has[int](p, nodes); n > 3000 {
		t.Errorf("the document has %d elements", n)
	}
	seen := has[string](p, `document.querySelector(".table-tasks .row a").title`)
	known := `Number(document.querySelector(".table-tasks").ariaRowCount)`
	for range 8 { // each loads at least a page of 200, so more than eight pages exist
		before := has[int](p, known)
		has[any](p, "(scrollTo(0, document.documentElement.scrollHeight), 1)")
		p.until("more rows came", fmt.Sprintf("%s > %d", known, before))
	}
	p.until("other rows are in sight", fmt.Sprintf(`document.querySelector(".table-tasks .row a") && document.querySelector(".table-tasks .row a").title !== %s`, jsText(seen)))
	if n := has[int](p, rows); n > 80 {
		t.Errorf("%d rows exist", n)
	}
	if n := has[int](p, nodes); n > 3000 {
		t.Errorf("the document has %d elements when it was scrolled", n)
	}
	p.fill("Search tasks", "needle")
	p.showsIn(".page-head", "1 task")
	p.showsIn(".table-tasks .table-body", short(found))
	p.click(".nav a", "Now")
	p.showsIn(".card-queue", fmt.Sprintf("%d of 20000 waiting", many+1))
	p.showsIn(".depth", fmt.Sprintf("Queue %d/20000", many+1))
}

// A change reloads the first page of a long list while the next page is being
// loaded, which aborts that request: the list must not stay short.
func TestALongListGoesOnAfterAChange(t *testing.T) {
	s := newStage(t)
	s.d.stop()
	s.vars["SIGNALBOX_QUEUE_MAX_SIZE"] = "1000"
	s.start()
	s.crowd(500)
	p := s.open("/ui/tasks")
	p.showsIn(".page-head", "500")
	has[any](p, `(() => {
		const real = fetch;
		window.fetch = (path, options) => {
			if (window.held || !path.includes("after=")) return real(path, options);
			window.held = true;
			return new Promise((_, no) => options.signal.addEventListener("abort", () => { window.ended = true; no(new DOMException("ended", "AbortError")); }));
		};
		scrollTo(0, document.documentElement.scrollHeight);
		return 1;
	})()`)
	p.until("the next page is asked for", "window.held === true")
	before := has[int](p, "document.documentElement.scrollHeight")
	s.submit(s.c, api.SubmitRequest{Prompt: "one more"})
	p.until("the request has ended", "window.ended === true")
	p.until("more came", fmt.Sprintf("document.documentElement.scrollHeight > %d", before+100))
}

// crowd submits many tasks that no agent takes.
func (s *stage) crowd(n int) {
	s.t.Helper()
	next := make(chan int)
	submitters := &http.Client{Transport: asOwner{&http.Transport{MaxIdleConnsPerHost: 16}}}
	defer submitters.CloseIdleConnections()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range next {
				body, _ := json.Marshal(api.SubmitRequest{Prompt: fmt.Sprintf("sleep 1s, report %d", i)})
				resp, err := submitters.Post(s.d.url+"/api/queue/task", "application/json", bytes.NewReader(body))
				if err != nil || resp.StatusCode != http.StatusCreated {
					s.t.Errorf("submit: %v, %v", resp, err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is reused
				resp.Body.Close()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// canary must not run in any place where users and agents can write.
const canary = `<script>window.canary="script"</script><img src=x onerror="window.canary='img'"><svg onload="canary='svg'"></svg><a href="javascript:canary='link'">here</a>`

// Text of users and agents is shown as text, whatever it looks like: prompt,
// output, answer, message, reason and schedule.
func TestHostileTextIsText(t *testing.T) {
	s := newStage(t)
	s.speaker("builder", `printf '%s\n' "$1" 'error: '"$1"; exit 3`)
	s.hire("coder")
	failed := s.end(s.c, s.task("builder", canary)).QueueID
	completed := s.completed(s.c, s.task("coder", "sleep 1ms "+canary)).QueueID
	running := s.running("coder", "sleep 10m "+canary)
	waiting := s.task("coder", canary)
	if _, err := s.c.Pause(s.ctx(), pauseOf("agent:builder", canary)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.CreateSchedule(s.ctx(), api.NewSchedule{Name: "nightly", CronExpression: "0 3 * * *", Message: canary, Description: canary}); err != nil {
		t.Fatal(err)
	}
	p := s.open("/ui/")
	shown := canary[:len("<script>window.canary")]
	places := []struct{ path, selector string }{
		{"/ui/", ".card-lanes"}, {"/ui/", ".card-queue"}, {"/ui/", ".card-lines, .card-lanes"},
		{"/ui/tasks", ".table-tasks"}, {"/ui/tasks/" + failed, ".output-box"}, {"/ui/tasks/" + failed, ".output-failure"},
		{"/ui/tasks/" + completed, "#result-head, .stack"}, {"/ui/tasks/" + running, "h1"}, {"/ui/tasks/" + waiting, ".text"},
		{"/ui/agents", ".agents"}, {"/ui/agents/coder", "main"}, {"/ui/agents/builder", ".note"}, {"/ui/schedules", ".listing-schedules"}, {"/ui/audit", ".audit"},
	}
	for i, place := range places {
		if i > 0 && place.path != places[i-1].path {
			p.goTo(place.path)
		}
		p.showsIn(place.selector, shown)
		if got := has[any](p, "window.canary"); got != nil {
			t.Fatalf("%s: it ran: %v", place.path, got)
		}
		if n := has[int](p, `document.querySelectorAll('main script, main img, main svg[onload], main a[href^="javascript"], [onerror], [onload]').length`); n > 0 {
			t.Errorf("%s: %d elements came out of it", place.path, n)
		}
	}
	// Also in dialogs and notes, and as the text of a search.
	p.goTo("/ui/tasks/" + failed)
	p.click(".task-actions button", "Retry…")
	p.until("the prompt is in the field", fmt.Sprintf(`document.querySelector("dialog textarea").value.startsWith(%s)`, jsText(shown)))
	p.allow("/api/search?")
	p.goTo("/ui/tasks?q=" + "%3Cimg+src%3Dx+onerror%3Dcanary%3D1%3E:x")
	p.until("the box contains it", `document.querySelector("#search")?.value.startsWith("<img")`)
	p.goTo("/ui/agents/%3Cscript%3Ecanary=1%3C%2Fscript%3E")
	p.allow("404")
	p.showsIn("main", "<script>canary=1</script>")
	if got := has[any](p, "window.canary"); got != nil {
		t.Errorf("it ran: %v", got)
	}
}
