package signalbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

func TestSort(t *testing.T) {
	at := func(minutes int) time.Time { return searchNow.Add(time.Duration(minutes) * time.Minute) }
	tasks := []signalbox.Task{
		{ID: "waits", Seq: 1, State: signalbox.Pending, Queue: "agent:coder", CreatedAt: at(-30), StartedAt: at(-20), Agent: "gone", Priority: 5}, // it was claimed before
		{ID: "runs", Seq: 2, State: signalbox.Working, Queue: "work", CreatedAt: at(-20), StartedAt: at(-19), Agent: "writer"},
		{ID: "done", Seq: 3, State: signalbox.Completed, Queue: "work", CreatedAt: at(-15), StartedAt: at(-13), EndedAt: at(-3), Agent: "coder", Priority: -1},
		{ID: "cancelled", Seq: 4, State: signalbox.Cancelled, Queue: "work", CreatedAt: at(-10), EndedAt: at(-5)},
	}
	for text, want := range map[string]string{
		"created":   "waits runs done cancelled",
		"-created":  "cancelled done runs waits",
		"ended":     "cancelled done runs waits", // those without an end: newest first
		"-ended":    "done cancelled runs waits",
		"wait":      "runs done cancelled waits",
		"-wait":     "waits cancelled done runs",
		"duration":  "done runs cancelled waits",
		"-duration": "runs done cancelled waits",
		"priority":  "done cancelled runs waits",
		"-priority": "waits cancelled runs done",
		"agent":     "done waits runs cancelled", // only coder may take the waiting one
		"-agent":    "runs done waits cancelled",
	} {
		s, err := signalbox.ParseSort(text)
		if err != nil || s.String() != text {
			t.Fatalf("%s is %s, %v", text, s, err)
		}
		got := slices.Clone(tasks)
		slices.SortFunc(got, func(a, b signalbox.Task) int { return s.Compare(s.Value(&a, searchNow), s.Value(&b, searchNow)) })
		var ids []string
		for i := range got {
			ids = append(ids, got[i].ID)
		}
		if said := strings.Join(ids, " "); said != want {
			t.Errorf("%s: %s, want %s", text, said, want)
		}
	}
	for text, want := range map[string]string{"durations": "did you mean duration?", "-": "use one of created", "Agent": "agent", "--wait": "wait"} {
		_, err := signalbox.ParseSort(text)
		var e *signalbox.Error
		if !errors.As(err, &e) || e.Code != signalbox.CodeValidation || e.Field != "sort" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Each key parses with each of its values and examples, and has a text.
func TestQueryKeys(t *testing.T) {
	for _, k := range signalbox.QueryKeys() {
		if k.Text == "" {
			t.Errorf("%s has no text", k.Name)
		}
		for _, v := range append(slices.Clone(k.Values), k.Examples...) {
			if q := parseQuery(t, k.Name+":"+v); q.String() != k.Name+":"+v {
				t.Errorf("%s:%s is %s", k.Name, v, q.String())
			}
		}
	}
}
