package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rig is a view without a terminal, with a fake clock and a fake director.
type rig struct {
	t   *testing.T
	m   *model
	now time.Time
	dir *fakeDirector
}

func newRig(t *testing.T, width, height int) *rig {
	t.Helper()
	r := &rig{t: t, now: noon, dir: &fakeDirector{}}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r.m = newModel(ctx, Options{
		URL: "http://127.0.0.1:8080", Director: r.dir, Now: func() time.Time { return r.now },
	})
	r.m.send = func(msg tea.Msg) { r.m.Update(msg) }
	r.send(tea.WindowSizeMsg{Width: width, Height: height})
	return r
}

// send passes a message to the view and runs its commands at once.
func (r *rig) send(msg tea.Msg) {
	r.t.Helper()
	_, cmd := r.m.Update(msg)
	r.do(cmd)
}

func (r *rig) do(cmd tea.Cmd) {
	if cmd == nil || reflect.ValueOf(cmd).Pointer() == reflect.ValueOf(r.m.nextTick).Pointer() {
		return // the test advances the clock itself
	}
	switch msg := cmd().(type) {
	case nil, tickMsg:
	case tea.BatchMsg:
		for _, c := range msg {
			r.do(c)
		}
	case tea.QuitMsg:
		r.dir.note("quit")
	default:
		r.send(msg)
	}
}

func (r *rig) snapshot(l api.Live) {
	l.At, l.Epoch = r.now, "e1"
	r.send(client.LiveEvent{Kind: client.LiveSnapshot, Live: l})
}

// keys presses keys one after another: names such as <enter>, or letters.
func (r *rig) keys(keys ...string) {
	r.t.Helper()
	for _, k := range keys {
		if name, ok := strings.CutPrefix(k, "<"); ok {
			r.send(named(r.t, strings.TrimSuffix(name, ">")))
			continue
		}
		for _, letter := range k {
			r.send(tea.KeyPressMsg{Code: letter, Text: string(letter)})
		}
	}
}

func named(t *testing.T, name string) tea.KeyPressMsg {
	t.Helper()
	codes := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace,
	}
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	code, ok := codes[name]
	if !ok {
		t.Fatalf("no key %q", name)
	}
	return tea.KeyPressMsg{Code: code}
}

// frame returns the text of the screen without colours, and checks its size.
func (r *rig) frame() string {
	r.t.Helper()
	lines := strings.Split(ansi.Strip(r.m.View().Content), "\n")
	if len(lines) > r.m.height {
		r.t.Errorf("%d lines on a screen of %d", len(lines), r.m.height)
	}
	for i, line := range lines {
		if width(line) > r.m.width {
			r.t.Errorf("line %d takes %d cells of %d: %q", i+1, width(line), r.m.width, line)
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (r *rig) shows(texts ...string) {
	r.t.Helper()
	frame := r.frame()
	for _, text := range texts {
		if !strings.Contains(frame, text) {
			r.t.Errorf("the screen does not show %q:\n%s", text, frame)
		}
	}
}

func (r *rig) hides(texts ...string) {
	r.t.Helper()
	frame := r.frame()
	for _, text := range texts {
		if strings.Contains(frame, text) {
			r.t.Errorf("the screen shows %q:\n%s", text, frame)
		}
	}
}

// golden compares the screen with a file.
func (r *rig) golden(name string) {
	r.t.Helper()
	path := filepath.Join("testdata", name+".golden")
	got := r.frame()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if got != string(want) {
		r.t.Errorf("%s: the screen is\n%s\nwant\n%s", path, got, want)
	}
}

// fakeDirector records its calls.
type fakeDirector struct {
	mu     sync.Mutex
	did    []string
	task   api.Task
	why    api.Why
	output []api.Output
	found  api.Search
	err    error // returned by all changes
	lost   error // returned by searches
}

func (f *fakeDirector) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, what)
}

func (f *fakeDirector) took() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	said := strings.Join(f.did, ", ")
	f.did = nil
	return said
}

func (f *fakeDirector) Submit(_ context.Context, req api.SubmitRequest, _ client.SubmitOptions) (api.SubmitResponse, error) {
	f.note(fmt.Sprintf("submit %q to %q", req.Prompt, req.Agent))
	return api.SubmitResponse{QueueID: id("newt"), Position: 1}, f.err
}

func (f *fakeDirector) Chat(_ context.Context, agent string, req api.ChatRequest, _ client.ChatOptions) (client.ChatReply, error) {
	f.note(fmt.Sprintf("chat %q to %s", req.Message, agent))
	return client.ChatReply{Accepted: &api.ChatAccepted{Execution: api.ExecutionRef{ID: id("chat")}}}, f.err
}

func (f *fakeDirector) Live(context.Context, func()) iter.Seq2[client.LiveEvent, error] { return nil }

func (f *fakeDirector) Search(_ context.Context, query string, _ client.SearchOptions) (api.Search, error) {
	f.note("search " + query)
	return f.found, f.lost
}

func (f *fakeDirector) Task(_ context.Context, id string) (api.Task, error) {
	if f.task.QueueID != id {
		return api.Task{}, errors.New("no such task")
	}
	return f.task, nil
}

func (f *fakeDirector) Why(context.Context, string) (api.Why, error) { return f.why, nil }

func (f *fakeDirector) FollowOutput(_ context.Context, id string, _ int64, each func(api.Output) error) error {
	for _, o := range f.output {
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeDirector) Cancel(_ context.Context, id string) (api.Cancelled, error) {
	f.note("cancel " + short(id))
	return api.Cancelled{QueueID: id, State: "cancelled"}, f.err
}

func (f *fakeDirector) Retry(_ context.Context, id string, _ api.RetryRequest, _ client.SubmitOptions) (api.SubmitResponse, error) {
	f.note("retry " + short(id))
	return api.SubmitResponse{QueueID: "queue-00000000000000000000newt", Position: 2}, f.err
}

func (f *fakeDirector) Edit(_ context.Context, id string, edit api.EditRequest) (api.Task, error) {
	f.note(fmt.Sprintf("edit %s at %d to %s", short(id), edit.Revision, edit.Place))
	return api.Task{QueueID: id, Position: 1, Queue: "agent:coder"}, f.err
}

func (f *fakeDirector) Pause(_ context.Context, req api.PauseRequest) (api.Paused, error) {
	f.note(joined(" ", "pause", req.Queue, req.Reason, map[bool]string{true: fmt.Sprint(req.Seconds, "s")}[req.Seconds > 0]))
	return api.Paused{}, f.err
}

func (f *fakeDirector) Resume(_ context.Context, queue string) (api.Paused, error) {
	f.note("resume " + queue)
	return api.Paused{}, f.err
}

func (f *fakeDirector) ReleaseLane(_ context.Context, agent string) (api.Released, error) {
	f.note("release " + agent)
	return api.Released{Agent: agent, QueueIDs: []string{"queue-1"}}, f.err
}
