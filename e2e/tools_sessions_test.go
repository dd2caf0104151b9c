package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/soak"
)

// callerEnv makes this test binary an MCP client that calls the tool work
// once and prints the answer. Its value is a callerSpec.
const callerEnv = "SIGNALBOX_E2E_CALLER"

type callerSpec struct{ URL, Version, Name string }

func runCaller(spec string) error {
	var s callerSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: s.Version})
	if err != nil {
		return err
	}
	defer session.Close()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "scarce__work", Arguments: workArgs{Name: s.Name, Hold: true}})
	if err != nil {
		return err
	}
	fmt.Println(textOf(res))
	return nil
}

// party is many sessions that use one tool.
type party struct {
	*box
	url     string
	doors   *doors
	callers map[int]*caller
	calls   map[int]*pending
	program map[int]*process // callers that are separate processes
}

const guests = 20

// Half of the sessions use each era.
func eraOf(i int) string { return []string{legacyEra, modernEra}[i%2] }

func nameOf(i int) string { return fmt.Sprintf("c%02d", i) }

// arrive makes one session after another call the tool, and waits until each
// of them has a slot or its position in the queue.
func (p *party) arrive(processes ...int) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range guests {
		if slices.Contains(processes, i) {
			spec, err := json.Marshal(callerSpec{p.url, eraOf(i), nameOf(i)})
			if err != nil {
				p.t.Fatal(err)
			}
			p.program[i] = launchProgram(p.t, self, p.work, p.environ(callerEnv+"="+string(spec)))
		} else {
			p.callers[i] = p.over(p.url, eraOf(i))
			p.calls[i] = p.callers[i].begin("scarce__work", workArgs{Name: nameOf(i), Hold: true}, nameOf(i))
		}
		if i < 2 {
			p.doors.arrived(nameOf(i))
			continue
		}
		p.depth(p.url, "scarce", i-1)
		if c := p.callers[i]; c != nil {
			c.hears(fmt.Sprintf("queued, position %d", i-1))
		}
	}
}

// Twenty MCP sessions share a tool of capacity 2. Some cancel and some
// disconnect, while waiting and while running. The others are served in
// order, and by the tool's own count never more than two at once.
func TestTwentySessionsShareATool(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	file := b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 2}), "mcpServers": object{"scarce": d.server("scarce")}})
	director := b.director("--tools", file)
	b.toolsReady(director.url, "scarce")
	p := &party{box: b, url: director.url, doors: d, callers: map[int]*caller{}, calls: map[int]*pending{}, program: map[int]*process{}}
	p.arrive(1, 2, 6, 7)

	// While waiting: two die, two cancel, one of each in each era.
	p.program[6].kill()
	p.program[7].kill()
	p.calls[8].cancel()
	p.calls[9].cancel()
	p.depth(p.url, "scarce", guests-2-4)
	// The third session is now first, the sixth is where it was, the eleventh has
	// moved up four places.
	p.callers[10].hears("queued, position 5")

	// While running: one cancels, two die.
	p.calls[0].cancel()
	d.arrived(nameOf(2))
	p.program[1].kill()
	d.arrived(nameOf(3))
	p.program[2].kill()
	d.arrived(nameOf(4))
	served := []int{3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}
	for k, i := range served {
		d.arrived(nameOf(i))
		d.open(nameOf(i))
		p.calls[i].answers("did " + nameOf(i))
		if k+2 < len(served) {
			d.arrived(nameOf(served[k+2]))
		}
	}
	for _, i := range []int{0, 8, 9} {
		if res, err := p.calls[i].ends(); err == nil {
			t.Errorf("the call %d was cancelled and answered %q", i, textOf(res))
		}
	}
	p.checkLog(append([]int{0, 1, 2}, served...))
	b.nothingHeld(p.url)
	p.rush()
	b.nothingHeld(p.url)
}

// checkLog checks the tool's log: which calls began, in which order, and how
// each ended.
func (p *party) checkLog(order []int) {
	p.t.Helper()
	for _, i := range []int{0, 1, 2} {
		p.doors.saw("cancel", nameOf(i))
	}
	moments := p.doors.moments()
	if n := most(p.t, moments); n != 2 {
		p.t.Errorf("%d calls at once: %v", n, moments)
	}
	var began, want []string
	for _, m := range moments {
		if m.what == "begin" {
			began = append(began, m.name)
		}
	}
	for _, i := range order {
		want = append(want, nameOf(i))
	}
	if !slices.Equal(began, want) {
		p.t.Errorf("they began as %v, want %v", began, want)
	}
}

// rush makes all remaining sessions call at the same time, repeatedly, and
// cancel a call before each one that they complete.
func (p *party) rush() {
	p.t.Helper()
	rounds := soak.Pick(4, 40)
	var all sync.WaitGroup
	for i, c := range p.callers {
		all.Go(func() {
			for round := range rounds {
				short, cancel := context.WithTimeout(p.ctx(), time.Duration(round+i%5)*time.Millisecond)
				c.call(short, "scarce__work", workArgs{Name: "given-up", MS: 5}, "") // it may be done by then
				cancel()
				name := fmt.Sprintf("r%02d.%d", i, round)
				if res, err := c.call(p.ctx(), "scarce__work", workArgs{Name: name, MS: 5}, ""); err != nil || textOf(res) != "did "+name {
					p.t.Errorf("%s answered %q, %v", name, textOf(res), err)
				}
			}
		})
	}
	all.Wait()
	moments := p.doors.moments()
	ended := 0
	for _, m := range moments {
		if m.what == "end" && m.name[0] == 'r' {
			ended++
		}
	}
	if n := most(p.t, moments); n != 2 || ended != rounds*len(p.callers) {
		p.t.Errorf("%d calls at once, %d ended of %d", n, ended, rounds*len(p.callers))
	}
}
