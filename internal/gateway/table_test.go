package gateway_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestNewReportsAllMistakes(t *testing.T) {
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(one("default")); err != nil {
		t.Fatal(err)
	}
	odd := tool("a__odd", "default")
	odd.Definition = json.RawMessage(`[]`)
	_, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{
		&scripted{name: "a", tools: []gateway.Tool{tool("a__x", "brwoser"), tool("a__y", "default"), odd, tool("", "default"), tool("a__\n", "default")}},
		&scripted{name: "b", tools: []gateway.Tool{tool("a__y", "default")}},
		&scripted{name: "b"},
	}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`server a: the tool "a__x" is left out: its queue "brwoser" is not configured`,
		`server a: the tool "a__odd" is left out: its definition is not a JSON object`,
		`its name must be 1 to 256 printable characters, not ""`, `not "a__\n"`,
		`server b: the tool "a__y" is left out: server a has one of that name`,
		`two servers are named "b"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %s:\n%v", want, err)
		}
	}
	if _, err := gateway.New(gateway.Options{}); err == nil {
		t.Error("a gateway without queues")
	}
}

// TestToolChangesNotifyListeners: a tool whose name is taken is skipped and reported, and
// added once the name is free.
func TestToolChangesNotifyListeners(t *testing.T) {
	first, second := &scripted{name: "first"}, &scripted{name: "second"}
	b := open(t, one("default"), gateway.Options{}, second, first)
	heard := 0
	stop := b.OnChange(func() { heard++ })
	first.offer(tool("n__b", "default"), tool("n__a", "default"))
	equal(t, names(b.Tools()), "n__a", "n__b")
	first.offer(tool("n__b", "default"), tool("n__a", "default"))
	if heard != 1 {
		t.Errorf("%d changes were reported, there was one", heard)
	}
	if d := b.Tools()[0].Timeout; d != time.Hour {
		t.Errorf("timeout %v", d)
	}

	// The provider that was named first wins, even if its tool appears later.
	mine := tool("n__a", "default")
	mine.Server = "second"
	second.offer(mine, tool("n__c", "nowhere"))
	if got := b.Tools()[0].Server; got != "second" || heard != 2 {
		t.Errorf("n__a is of %s, %d changes", got, heard)
	}
	servers := b.Servers()
	if len(servers) != 2 || servers[0].Name != "first" || !strings.Contains(servers[0].Error, `"n__a" is left out: server second has one`) || !strings.Contains(servers[1].Error, `its queue "nowhere" is not configured`) {
		t.Errorf("%+v", servers)
	}
	if len(b.log.lines("left out")) != 2 {
		t.Errorf("the log: %s", b.log.buf.String())
	}
	second.offer()
	if got := b.Servers()[0].Error; got != "" || b.Tools()[0].Server != "s" {
		t.Errorf("after the other was removed: %q, %+v", got, b.Tools()[0])
	}
	stop()
	first.offer()
	if heard != 3 || len(b.Tools()) != 0 {
		t.Errorf("heard %d, tools %v", heard, names(b.Tools()))
	}
}

func names(tools []gateway.Tool) (out []string) {
	for _, tool := range tools {
		out = append(out, tool.Name)
	}
	return out
}

func TestDefaultTimeout(t *testing.T) {
	bare := tool("s__x", "default")
	bare.Timeout = 0
	b := open(t, one("default"), gateway.Options{}, &scripted{name: "s", tools: []gateway.Tool{bare}})
	if got := b.Tools()[0].Timeout; got != gateway.DefaultTimeout {
		t.Errorf("%v", got)
	}
}

func TestCallsWhileToolsChange(t *testing.T) {
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__x", "default")}}
	b := open(t, map[string]toolqueue.Config{"default": {Concurrent: 64}}, gateway.Options{}, p)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__x"}); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() {
			for range 50 {
				p.offer(tool("s__x", "default"), tool("s__y", "default"))
				p.offer(tool("s__x", "default"))
				b.Servers()
			}
		})
	}
	group.Wait()
	b.free(t, "default")
}
