package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/dashboard"
)

// hertz is how often a director sends changes.
const hertz = 5

// play is a simulated director that answers the pages with invented tasks.
type play struct {
	rate   int
	random *rand.Rand
	told   atomic.Int64 // changed tasks, per reader

	mu       sync.Mutex
	revision int64
	tasks    []api.LiveTask
	agents   int
	readers  map[chan api.Live]bool
}

// newPlay returns a play whose tasks run at half of its agents, evenly distributed; a
// tenth of the other agents is down.
func newPlay(rows, rate, agents int) *play {
	p := &play{rate: rate, agents: agents, random: rand.New(rand.NewPCG(1, 2)), readers: map[chan api.Live]bool{}}
	began := time.Now().Add(-time.Minute)
	for i := range rows {
		p.tasks = append(p.tasks, api.LiveTask{
			QueueID: fmt.Sprintf("queue-06gz%022d", i), State: "working", Queue: "work", Agent: nameOf(i % p.working()), Slot: i / p.working(),
			Mode: "async", PromptPreview: fmt.Sprintf("Upgrade service %d to the newest release and run its tests", i), Source: "api", By: "bench",
			CreatedAt: began, StartedAt: &began, LastProgress: &began,
		})
	}
	return p
}

func nameOf(agent int) string { return fmt.Sprintf("agent-%03d", agent) }

// working returns how many of the agents run something: the first ones.
func (p *play) working() int { return p.agents / 2 }

// agent returns the lane of an agent with its running tasks.
func (p *play) agent(n int) api.LiveAgent {
	a := api.LiveAgent{Agent: api.Agent{Name: nameOf(n), Kind: "claude", State: "idle", Slots: 4}, Face: "idle", Current: []api.LiveTask{}, Line: []api.LiveTask{}}
	if n >= p.working() {
		if n%20 == 0 {
			a.State, a.Face = "down", "down"
		}
		return a
	}
	for i := n; i < len(p.tasks); i += p.working() {
		a.Current = append(a.Current, p.tasks[i])
	}
	a.State, a.Face, a.Slots, a.InUse = "working", "running", len(a.Current), len(a.Current)
	return a
}

// run changes tasks: all changes of a fifth of a second at once.
func (p *play) run(ctx context.Context) {
	tick := time.NewTicker(time.Second / hertz)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.change(p.rate / hertz)
		}
	}
}

func (p *play) change(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var changed api.Live
	at := map[int]bool{}
	for _, i := range p.random.Perm(len(p.tasks))[:min(n, len(p.tasks))] {
		t := &p.tasks[i]
		t.LastProgress = &now
		t.Attempts = t.Attempts%9 + 1
		switch p.random.IntN(3) {
		case 0:
			t.Call = nil
		default:
			t.Call = &api.LiveCall{Tool: "web_search", Capacity: "search", Waiting: p.random.IntN(2) == 0, Since: now, InUse: p.random.IntN(4), Concurrent: 4}
		}
		changed.Tasks = append(changed.Tasks, *t)
		at[i%p.working()] = true
	}
	for agent := range at {
		changed.Agents = append(changed.Agents, p.agent(agent))
	}
	p.revision++
	for reader := range p.readers {
		select {
		case reader <- changed:
		default: // it is behind
		}
	}
	p.told.Add(int64(n))
}

func (p *play) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/ui/", dashboard.New())
	answer := func(pattern string, body func(*http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body(r))
		})
	}
	answer("GET /api/me", func(*http.Request) any { return api.Me{Kind: "anonymous", Scopes: []string{"admin"}, Open: true} })
	answer("GET /api/search", p.search)
	mux.HandleFunc("GET /api/live", p.live)
	mux.HandleFunc("GET /plain", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, plain)
	})
	return mux
}

// search pages through the tasks.
func (p *play) search(r *http.Request) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, _ := strconv.Atoi(r.URL.Query().Get("after"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to := min(len(p.tasks), from+max(1, limit))
	out := api.Search{Tasks: p.tasks[from:to], Total: len(p.tasks)}
	if to < len(p.tasks) {
		out.Next = strconv.Itoa(to)
	}
	return out
}

// live is the stream of api.Live. With ?each=1 each change is a separate event.
func (p *play) live(w http.ResponseWriter, r *http.Request) {
	news := make(chan api.Live, 64)
	p.mu.Lock()
	all := api.Live{
		Revision: p.revision, At: time.Now(), Epoch: "bench", Tasks: append([]api.LiveTask(nil), p.tasks...),
		Totals: &api.Totals{Running: len(p.tasks), Slots: len(p.tasks), MaxSize: 50}, Health: &api.Verdict{OK: true, Text: "All is well.", Attention: []api.Attention{}},
		Pauses: &[]api.Pause{},
	}
	for n := range p.agents {
		all.Agents = append(all.Agents, p.agent(n))
	}
	p.readers[news] = true
	p.mu.Unlock()
	defer func() { p.mu.Lock(); delete(p.readers, news); p.mu.Unlock() }()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string, data api.Live) {
		text, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\nid: bench.%d\ndata: %s\n\n", event, data.Revision, text)
	}
	flush := http.NewResponseController(w).Flush
	send("snapshot", all)
	_ = flush()
	for revision := all.Revision; ; {
		select {
		case <-r.Context().Done():
			return
		case changed := <-news:
			if r.URL.Query().Get("each") == "" {
				revision++
				changed.Revision, changed.At, changed.Epoch = revision, time.Now(), "bench"
				send("change", changed)
				_ = flush()
				continue
			}
			for _, one := range changed.Tasks {
				revision++
				send("change", api.Live{Revision: revision, At: time.Now(), Epoch: "bench", Tasks: []api.LiveTask{one}})
				_ = flush()
				time.Sleep(time.Second / hertz / time.Duration(len(changed.Tasks)+1))
			}
		}
	}
}

// plain is the control: a plain table that writes each change as it arrives.
const plain = `<!doctype html><title>A plain table</title><table id="t"></table><script>
const rows = new Map(), table = document.getElementById("t");
const write = (task) => {
	let row = rows.get(task.queue_id);
	if (!row) { row = table.insertRow(); for (let i = 0; i < 7; i++) row.insertCell(); rows.set(task.queue_id, row); }
	const call = task.call ? (task.call.waiting ? "waiting for " : "calling ") + task.call.tool + " " + task.call.in_use + "/" + task.call.concurrent : "";
	const texts = [task.state, task.queue_id.slice(-4), task.prompt_preview, call, task.agent, task.by + " " + task.source, "attempt " + (task.attempts ?? 0)];
	texts.forEach((text, i) => { row.cells[i].textContent = text; });
};
const stream = new EventSource("/api/live?each=1");
for (const name of ["snapshot", "change"]) stream.addEventListener(name, (e) => { for (const task of JSON.parse(e.data).tasks ?? []) write(task); });
</script>`
