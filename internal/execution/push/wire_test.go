package push_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// A redirect is not followed: the token and the task only go to the registered address.
func TestRedirectIsNotFollowed(t *testing.T) {
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	h := newFixture(t, fast, attempts(2)) // the third failure in a row would close the agent
	a := h.agent(Options{Token: "the-token-of-the-agent"})
	a.Script(Offer, Redirect(other.URL), Redirect(other.URL))
	id := h.submit(engine.NewTask{})
	h.start()
	h.ends(id, signalbox.ReasonDispatchFailed)
	if n := reached.Load(); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
	for _, s := range a.Requests("") {
		if s.Header.Get("Authorization") != "Bearer the-token-of-the-agent" {
			t.Errorf("%s came without the token", s)
		}
	}
	if strings.Contains(h.log.String(), "the-token-of-the-agent") {
		t.Error("the log names the token")
	}
}

// Link-local and metadata addresses are refused, whatever name resolves to them.
func TestMetadataAddressesAreRefused(t *testing.T) {
	h := newFixture(t)
	for i, host := range []string{"169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "[::ffff:169.254.169.254]"} {
		h.put(signalbox.Agent{Name: "m" + strconv.Itoa(i), Kind: "demo", URL: "http://" + host + ":80", Slots: 1}, "")
	}
	h.start()
	for i := range 5 {
		name := "m" + strconv.Itoa(i)
		h.await(name+" is refused", func() bool { return strings.Contains(h.live(name).Message, "must never be contacted") })
	}
}

func TestDiscoveryFindsAgentsOnLoopbackPorts(t *testing.T) {
	h := newFixture(t)
	a := New(t, Options{Name: "found", Slots: 2})
	plain := New(t, Options{Plain: true})
	named := h.agent(Options{Name: "configured"})
	named.Down()
	usurper := New(t, Options{Name: "configured"})
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"state":"idle"}`)) }))
	defer stranger.Close()
	h.start()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, 10)
	scan := func(url string) int {
		_, text, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
		port, _ := strconv.Atoi(text)
		go func() {
			h.d.Discover(ctx, push.Ports{First: port, Last: port})
			done <- struct{}{}
		}()
		return port
	}
	scan(a.URL())
	port := scan(plain.URL())
	scan(usurper.URL())
	scan(stranger.URL)
	name := "agent-" + strconv.Itoa(port)
	h.await("the agents are found", func() bool { return h.live("found").Up && h.live(name).Up })
	usurper.AwaitRequest(Status, 1)
	stop()
	for range 4 {
		<-done
	}
	if got := h.live("found"); got.Slots != 2 || !got.Fencing || got.Source != signalbox.AgentDiscovered {
		t.Errorf("found %+v", got)
	}
	if got := h.live("configured"); got.URL != named.URL() {
		t.Error("a stranger took the name of a configured agent that is down")
	}
	if n := len(h.engine.LiveAgents()); n != 3 {
		t.Errorf("%d agents are known", n)
	}
	id := h.submit(engine.NewTask{Agent: name})
	h.untilState(id, signalbox.Working)
}

func beat(state string, tasks ...api.AgentCurrentTask) api.Heartbeat {
	return api.Heartbeat{State: state, CurrentTasks: tasks}
}

// A heartbeat shows that a busy agent is free, without a probe.
func TestHeartbeatFreesHeldAgent(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{})
	h.start()
	h.untilUp("fake")
	a.Script(Offer, Busy(nil))
	a.Script(Status, Say(200, api.AgentStatus{Type: "agent", AgentKind: "demo", State: "working", CurrentTask: &api.AgentCurrentTask{ID: "task-by-hand"}}))
	id := h.submit(engine.NewTask{})
	h.await("the agent is held", func() bool { return h.live("fake").Held && h.task(id).State == signalbox.Pending })
	h.d.Heartbeat("fake", beat("working", api.AgentCurrentTask{ID: "task-by-hand"}))
	if !h.live("fake").Held {
		t.Error("a beat that says working freed the agent")
	}
	h.d.Heartbeat("fake", beat("idle"))
	h.untilState(id, signalbox.Working)
	h.d.Heartbeat("nobody", beat("idle")) // ignored
}

// What an agent learns about its account between two runs comes with a heartbeat; a heartbeat without an
// account changes nothing.
func TestHeartbeatTellsOfTheAccount(t *testing.T) {
	h := newFixture(t, noTick)
	h.agent(Options{Account: "plan"})
	h.start()
	h.untilTold("fake")
	told := beat("idle")
	told.Account = &api.AgentAccount{Name: "plan", Windows: []api.AccountWindow{{Name: "five_hour", UsedPercent: 42}}}
	for _, b := range []api.Heartbeat{told, beat("idle")} {
		h.d.Heartbeat("fake", b)
		h.await("its windows are known", func() bool {
			w := h.account("plan").Windows
			return len(w) == 1 && w[0].Name == "five_hour" && w[0].UsedPercent == 42
		})
	}
	if l := h.live("fake"); l.Account != "plan" || !l.Up {
		t.Errorf("%+v", l)
	}
}

// A heartbeat does not bring an unreachable agent up: its tasks would use up their attempts.
func TestHeartbeatOfUnreachableAgentGetsNoTasks(t *testing.T) {
	h := newFixture(t, freshConnections)
	a := h.agent(Options{})
	h.start()
	h.untilUp("fake")
	a.Down()
	h.await("it is down", func() bool { return !h.live("fake").Up })
	id := h.submit(engine.NewTask{})
	for range 100 {
		h.d.Heartbeat("fake", beat("idle"))
	}
	if got := h.task(id); got.Attempts != 0 || h.live("fake").Up {
		t.Errorf("%d attempts, up %v", got.Attempts, h.live("fake").Up)
	}
	a.Up()
	h.untilState(id, signalbox.Working)
}

// Tasks that a heartbeat lists count as heard from, so heartbeats keep them alive.
func TestHeartbeatKeepsTasksAlive(t *testing.T) {
	t.Parallel()
	h := newFixture(t, func(h *fixture, _ *engine.Options) {
		h.opts.FollowWait = 20 * time.Millisecond
	})
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{})
	h.start()
	task := h.untilState(id, signalbox.Working)
	for range 1000 {
		a.Script(Output, Say(500, nil)) // it cannot report on its task, but is alive
	}
	for range 5 {
		asked := len(a.Requests(Output))
		h.clock.silenceFor(ttl * 2 / 3)
		h.d.Heartbeat("fake", beat("working", api.AgentCurrentTask{ID: task.TaskID, QueueID: id, Fence: task.Fence}))
		a.Await("it is asked", func() bool { return len(a.Requests(Output)) > asked })
	}
	if got := h.task(id); got.State != signalbox.Working {
		t.Errorf("the task is %s: %s", got.State, got.Message)
	}
}

// A down agent is probed at intervals, not continuously.
func TestPollsOfDeadAgentAreBounded(t *testing.T) {
	var dials atomic.Int64
	h := newFixture(t, func(h *fixture, _ *engine.Options) {
		dialer := &net.Dialer{}
		h.opts.Transport = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return dialer.DialContext(ctx, network, addr)
		}}
	})
	a := h.agent(Options{})
	a.Down()
	h.start()
	h.await("it is asked", func() bool { return dials.Load() >= 3 })
	before := time.Now()
	first := dials.Load()
	h.await("it is asked again", func() bool { return dials.Load() >= first+10 })
	if took := time.Since(before); took < 50*time.Millisecond { // every 10 ms here
		t.Errorf("ten questions within %s", took)
	}
}

// An agent whose long polls return at once is not polled continuously.
func TestEarlyLongPollAnswersAreBounded(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	for range 10_000 {
		a.Script(Output, Say(200, api.AgentOutput{}))
	}
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	before := time.Now()
	a.AwaitRequest(Output, 4)
	if took := time.Since(before); took < 200*time.Millisecond {
		t.Errorf("four long polls within %s", took)
	}
}

// Messages of an agent are cut before they are stored and logged.
func TestLongMessagesAreTruncated(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	a.Script(Offer, Say(400, api.AgentRefusal{Message: strings.Repeat("no ", 100_000)}))
	id := h.submit(engine.NewTask{})
	h.start()
	if got := h.ends(id, signalbox.ReasonRejected); len(got.Message) > 2000 {
		t.Errorf("a message of %d bytes was stored", len(got.Message))
	}
}

// The log of a task can be read while it runs.
func TestOutputWhileItRuns(t *testing.T) {
	ctx := context.Background()
	h := newFixture(t)
	a := h.agent(Options{})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	a.Print(id, "one ")
	out, ok := h.d.Output(ctx, id, 0, 10*time.Second)
	if !ok || out.Text != "one " {
		t.Fatalf("output %+v %v", out, ok)
	}
	a.Print(id, "two")
	out, ok = h.d.Output(ctx, id, out.Next, 10*time.Second)
	if !ok || out.Text != "two" {
		t.Fatalf("output %+v %v", out, ok)
	}
	a.Finish(id, End{})
	h.ends(id, signalbox.ReasonCompleted)
	h.await("nobody follows it", func() bool { _, ok := h.d.Output(ctx, id, 0, 0); return !ok })
}

// An agent's figures are added up and converted to whole milliseconds.
func TestInvalidFiguresAreNotStored(t *testing.T) {
	for _, seconds := range []float64{-1, 1e12, 1e308} {
		got := push.ResultOf(api.AgentTaskStatus{
			DurationSeconds: seconds, CostUSD: -0.5, ToolCount: -1, TokenUsage: &api.TokenUsage{Input: -1, Output: -1},
		})
		if got.DurationSeconds != 0 || got.CostUSD != 0 || got.ToolCount != 0 || got.InputTokens != 0 || got.OutputTokens != 0 {
			t.Errorf("of a run of %g seconds this is stored: %+v", seconds, got)
		}
	}
	if got := push.ResultOf(api.AgentTaskStatus{DurationSeconds: 604800.5, CostUSD: 0.5, ToolCount: 9}); got.DurationSeconds != 604800.5 || got.CostUSD != 0.5 || got.ToolCount != 9 {
		t.Errorf("of a run of a week this is stored: %+v", got)
	}
}

// More slots than allowed would overlap the numbers of isolated slots.
func TestSlotsReportedByAgentAreBounded(t *testing.T) {
	for said, want := range map[int]int{4: 4, 1_000_000_000: signalbox.MaxAgentSlots} {
		if before, after := push.SlotsOf(said); before != want || after != want {
			t.Errorf("an agent that says %d has %d slots, and %d when its row has changed; want %d", said, before, after, want)
		}
	}
}
