package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestKeysOfCalls(t *testing.T) {
	argument := gateway.KeyOfArgument("account")
	with := func(principal, session, arguments string) *gateway.Call {
		return &gateway.Call{Caller: gateway.Caller{Principal: principal, Session: session}, Arguments: json.RawMessage(arguments)}
	}
	for _, test := range []struct {
		name string
		of   gateway.KeyOf
		a, b *gateway.Call
		same bool
	}{
		{"one caller", gateway.KeyOfCaller, with("user:a", "s", ""), with("user:a", "r", ""), true},
		{"two callers", gateway.KeyOfCaller, with("user:a", "s", ""), with("user:b", "s", ""), false},
		{"one session", gateway.KeyOfSession, with("user:a", "s", ""), with("user:b", "s", ""), true},
		{"two sessions", gateway.KeyOfSession, with("user:a", "s", ""), with("user:a", "r", ""), false},
		{"one value, written in two ways", argument, with("", "", `{"account": {"a": 1, "b": "\u0041"}}`), with("x", "", `{"account":{"b":"A","a":1},"other":2}`), true},
		{"two values", argument, with("", "", `{"account": "1"}`), with("", "", `{"account": 1}`), false},
		{"two long numbers", argument, with("", "", `{"account": 12345678901234567890}`), with("", "", `{"account": 12345678901234567891}`), false},
		{"none", argument, with("", "", `{"account": null}`), with("", "", ``), true},
	} {
		a, b := test.of(test.a), test.of(test.b)
		if (a == b) != test.same {
			t.Errorf("%s: %q and %q", test.name, a, b)
		}
	}
	if argument(with("", "", `{}`)) != "" {
		t.Error("a call without the argument has a key")
	}
}

// TestRateOfEachCaller: each caller has a rate limit of its own. A caller that would
// wait too long is told when to try again.
func TestRateOfEachCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tool("s__find", "api")
		s.Timeout = time.Second
		p := &scripted{name: "s", tools: []gateway.Tool{s}, onCall: func(context.Context, gateway.Call) (gateway.Result, error) {
			return gateway.Result{Content: text}, nil
		}}
		queues := map[string]toolqueue.Config{"api": {Concurrent: 4, PerKey: true, Rate: toolqueue.Rate{N: 1, Per: time.Minute}}}
		b := open(t, queues, gateway.Options{Keys: map[string]gateway.KeyOf{"api": gateway.KeyOfCaller}}, p)
		of := func(who string) error {
			_, err := b.Call(t.Context(), gateway.Call{Tool: "s__find", Caller: gateway.Caller{Principal: who}})
			return err
		}
		for _, who := range []string{"user:a", "user:b"} {
			if err := of(who); err != nil {
				t.Error(err)
			}
		}
		if err := of("user:a"); code(t, err) != signalbox.CodeToolQueueOut || !strings.Contains(err.Error(), "whose rate lets it start at") {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if err := of("user:a"); err != nil {
			t.Error(err)
		}
	})
}
