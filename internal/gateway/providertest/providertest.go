// Package providertest tests what every provider of the gateway must guarantee.
// A provider's tests call Run with a function that makes a fixture:
//
//	func TestProvider(t *testing.T) {
//		providertest.Run(t, func(t *testing.T) providertest.Fixture {
//			url, gone := providertest.Serve(t, upstream)
//			return providertest.Fixture{Provider: mcp.New(…), Answers: "s__echo", Hangs: "s__sleep", Gone: gone}
//		})
//	}
//
// Each case makes a fixture of its own, so that cases do not affect each
// other.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// soon bounds what should happen quickly, on a busy machine.
const soon = time.Minute

// Fixture is a provider before its start, with what the cases need to know.
type Fixture struct {
	Provider  gateway.Provider
	Answers   string          // a tool that answers at once, without isError
	Arguments json.RawMessage // for Answers; empty: {}
	Hangs     string          // a tool that does not answer by itself, called with {}
	// Hanging returns when the upstream has received a call of Hangs.
	Hanging func(t *testing.T)
	// Gone reports whether all connections and processes have ended; it is polled. nil: the
	// provider has none.
	Gone func() bool
}

// Run runs all cases.
func Run(t *testing.T, make func(t *testing.T) Fixture) {
	for name, test := range map[string]func(*testing.T, *box){
		"the tools are whole and stay the same":      tools,
		"a call is answered":                         answers,
		"calls run side by side":                     sideBySide,
		"a tool that is not there is an error":       unknown,
		"a call that is cancelled returns soon":      cancelled,
		"a call whose time is over returns soon":     timedOut,
		"a call whose context has ended is not made": ended,
		"a session may end twice, and come back":     sessions,
		"Close ends all":                             closes,
	} {
		t.Run(name, func(t *testing.T) {
			b := &box{Fixture: make(t), changed: newSignal()}
			t.Cleanup(func() {
				if err := b.Provider.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			b.start(t)
			test(t, b)
		})
	}
}

// box is a started fixture.
type box struct {
	Fixture
	changed chan struct{}
}

func newSignal() chan struct{} { return make(chan struct{}, 1) }

// start waits until the tools are there.
func (b *box) start(t *testing.T) {
	t.Helper()
	err := b.Provider.Start(t.Context(), func() {
		select {
		case b.changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	limit := time.After(30 * time.Second)
	for !b.has(b.Answers) || b.Provider.Server().State != gateway.StateReady {
		select {
		case <-b.changed:
		case <-limit:
			t.Fatalf("no tool %q after 30 s, the server is %+v", b.Answers, b.Provider.Server())
		}
	}
}

func (b *box) has(name string) bool {
	for _, tool := range b.Provider.Tools() {
		if tool.Name == name {
			return true
		}
	}
	return false
}

func (b *box) call(ctx context.Context, tool, session string) (gateway.Result, error) {
	args := json.RawMessage("{}")
	if tool == b.Answers && len(b.Arguments) > 0 {
		args = b.Arguments
	}
	return b.Provider.Call(ctx, gateway.Call{Tool: tool, Arguments: args, Caller: gateway.Caller{Session: session}})
}

func tools(t *testing.T, b *box) {
	first := b.Provider.Tools()
	if again := b.Provider.Tools(); !reflect.DeepEqual(first, again) {
		t.Errorf("two answers: %+v, then %+v", first, again)
	}
	if got := b.Provider.Server(); got.Name != b.Provider.Name() || got.State != gateway.StateReady || got.Tools != len(first) || got.Since.IsZero() {
		t.Errorf("the server is %+v, with %d tools", got, len(first))
	}
	for _, tool := range first {
		var def struct{ Name string }
		if err := json.Unmarshal(tool.Definition, &def); err != nil || def.Name != tool.Name {
			t.Errorf("the definition of %s is named %q: %v", tool.Name, def.Name, err)
		}
		if tool.Server != b.Provider.Name() || tool.Kind == "" || tool.Timeout <= 0 && !tool.Async || tool.Queue == "" && tool.Kind != gateway.KindInternal && !tool.Async {
			t.Errorf("the tool is not whole: %+v", tool)
		}
	}
}

func answers(t *testing.T, b *box) {
	r, err := b.call(t.Context(), b.Answers, "")
	if err != nil {
		t.Fatal(err)
	}
	var content []json.RawMessage
	if err := json.Unmarshal(r.Content, &content); err != nil || r.IsError {
		t.Errorf("content %s, isError %v: %v", r.Content, r.IsError, err)
	}
}

func sideBySide(t *testing.T, b *box) {
	ctx, cancel := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	hanging.Go(func() { _, _ = b.call(ctx, b.Hangs, "one") })
	b.Hanging(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := b.call(ctx, b.Answers, "two"); err != nil {
				t.Errorf("beside one that hangs: %v", err)
			}
		})
	}
	group.Wait()
	cancel()
	hanging.Wait()
}

func unknown(t *testing.T, b *box) {
	_, err := b.call(t.Context(), b.Answers+"-that-is-not-there", "")
	typed(t, err)
}

// typed fails the test unless err is a public error.
func typed(t *testing.T, err error) {
	t.Helper()
	var ours *signalbox.Error
	var theirs *gateway.ProtocolError
	if !errors.As(err, &ours) && !errors.As(err, &theirs) {
		t.Errorf("neither a *signalbox.Error nor a *gateway.ProtocolError: %v", err)
	}
}

func cancelled(t *testing.T, b *box) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := b.call(ctx, b.Hangs, "")
		done <- err
	}()
	b.Hanging(t)
	cancel()
	returnsSoon(t, done)
	if _, err := b.call(t.Context(), b.Answers, ""); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func timedOut(t *testing.T, b *box) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := b.call(ctx, b.Hangs, "")
		done <- err
	}()
	returnsSoon(t, done)
}

func returnsSoon(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a call that never ended was answered")
		}
	case <-time.After(soon):
		t.Fatalf("still under way %v after its context ended", soon)
	}
}

func ended(t *testing.T, b *box) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.call(ctx, b.Answers, ""); err == nil {
		t.Error("it was answered")
	}
}

func sessions(t *testing.T, b *box) {
	b.Provider.EndSession("never seen")
	for range 2 {
		if _, err := b.call(t.Context(), b.Answers, "s1"); err != nil {
			t.Fatal(err)
		}
		b.Provider.EndSession("s1")
		b.Provider.EndSession("s1")
	}
}

func closes(t *testing.T, b *box) {
	done := make(chan error, 1)
	go func() {
		r, err := b.call(t.Context(), b.Hangs, "s1")
		if err == nil && r.IsError { // a server that is being stopped may fail the call itself
			err = fmt.Errorf("the tool failed: %s", r.Content)
		}
		done <- err
	}()
	b.Hanging(t)
	for range 2 {
		if err := b.Provider.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	returnsSoon(t, done)
	if got := b.Provider.Server().State; got != gateway.StateStopped {
		t.Errorf("the server is %s", got)
	}
	_, err := b.call(t.Context(), b.Answers, "s1")
	typed(t, err)
	testkit.Wait(t, "no connection or process is left", func() bool { return b.Gone == nil || b.Gone() })
}
