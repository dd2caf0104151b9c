package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// streams answers the n-th request with the n-th text as a stream, which then
// breaks. It records each request.
func streams(t *testing.T, asked *[]string, texts ...string) string {
	t.Helper()
	var n atomic.Int32
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		*asked = append(*asked, r.URL.RawQuery+" "+r.Header.Get("Last-Event-ID"))
		if i >= len(texts) {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, texts[i])
	})
}

func event(seq int, kind string) string {
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"seq\":%d,\"kind\":%q}\n\n", seq, kind, seq, kind)
}

// collect returns what a stream of events yields until its error.
func collect(t *testing.T, c *client.Client, opts client.EventsOptions) (got []string, err error) {
	t.Helper()
	for e, err := range c.Events(t.Context(), opts) {
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprint(e.Seq, e.Kind))
	}
	return got, nil
}

func TestEventsResume(t *testing.T) {
	for _, test := range []struct {
		name    string
		opts    client.EventsOptions
		streams []string
		want    string
		asked   string
	}{
		{"after the last seen", client.EventsOptions{After: 4, QueueID: "queue-1"},
			[]string{": hello\n\n" + event(5, "submit") + event(6, "claim") + "id: 7\ndata: {\"seq\":7,", event(6, "claim") + event(7, "accept")},
			"[5submit 6claim 7accept]", "[after=4&queue_id=queue-1 4 after=6&queue_id=queue-1 6 after=7&queue_id=queue-1 7]"},
		{"from the beginning", client.EventsOptions{}, []string{event(1, "submit")}, "[1submit]", "[after=0 0 after=1 1]"},
		{"reset", client.EventsOptions{After: 2},
			[]string{event(90, "reset") + event(90, "submit"), event(3, "reset") + event(3, "claim")},
			"[90reset 90submit 3reset 3claim]", "[after=2 2 after=90 90 after=3 3]"},
		{"now, lost before it was known", client.EventsOptions{After: client.Now}, []string{"", event(8, "submit")},
			"[0reset 8submit]", "[    after=8 8]"},
		{"now, said by an id alone", client.EventsOptions{After: client.Now}, []string{"id: 7\n\n", event(8, "submit")},
			"[8submit]", "[  after=7 7 after=8 8]"},
		{"lines as they may come", client.EventsOptions{}, []string{"id:1\r\nevent:submit\r\ndata:{\"seq\":1,\r\ndata:\"kind\":\"submit\"}\r\n\r\nretry: 3\nfuture: x\n\n"},
			"[1submit]", "[after=0 0 after=1 1]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			c := newClient(t, streams(t, &asked, test.streams...), client.Options{})
			got, err := collect(t, c, test.opts)
			var e *client.Error
			if !errors.As(err, &e) || e.Status != http.StatusUnauthorized {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != test.want || fmt.Sprint(asked) != test.asked {
				t.Fatalf("got %v\nasked %v", got, asked)
			}
		})
	}
}

func TestEventsStop(t *testing.T) {
	var asked []string
	c := newClient(t, streams(t, &asked, event(1, "submit")+event(2, "claim")), client.Options{})
	opens := 0
	for range c.Events(t.Context(), client.EventsOptions{OnOpen: func() { opens++ }}) {
		break
	}
	if opens != 1 || len(asked) != 1 {
		t.Fatalf("%d opens, %v", opens, asked)
	}
}

func TestEventsRefuseWhatIsNoStream(t *testing.T) {
	for name, body := range map[string]string{"text/html": "<html>", "text/event-stream": "data: no json\n\n"} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", name)
			io.WriteString(w, body)
		})
		if _, err := collect(t, newClient(t, url, client.Options{}), client.EventsOptions{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestSilentStreamIsOpenedAnew(t *testing.T) {
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if n.Add(1) == 1 {
			io.WriteString(w, event(1, "submit"))
			w.(http.Flusher).Flush()
			<-r.Context().Done() // a connection that nobody closes, and no byte more
			return
		}
		io.WriteString(w, event(2, "claim"))
	})
	c := newClient(t, url, client.Options{StreamIdle: 20 * time.Millisecond})
	var got []int64
	for e, err := range c.Events(t.Context(), client.EventsOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Seq); e.Seq == 2 {
			break
		}
	}
	if fmt.Sprint(got) != "[1 2]" {
		t.Fatal(got)
	}
}

func output(seq int, text string, done bool) string {
	return fmt.Sprintf("event: output\ndata: {\"seq\":%d,\"text\":%q,\"next\":%d,\"done\":%v}\n\n", seq, text, seq+len(text), done)
}

func TestFollowOutputGoesOnWhereItStopped(t *testing.T) {
	var asked []string
	c := newClient(t, streams(t, &asked, "", output(3, "one ", false)+"event: output\ndata: {", output(7, "two", true)), client.Options{})
	var text strings.Builder
	err := c.FollowOutput(t.Context(), "queue-1", 3, func(o api.Output) error { text.WriteString(o.Text); return nil })
	if err != nil || text.String() != "one two" {
		t.Fatalf("%q %v", text.String(), err)
	}
	if fmt.Sprint(asked) != "[after=3  after=3  after=7 ]" {
		t.Fatal(asked)
	}
}

func TestFollowOutputReturnsTheCallersError(t *testing.T) {
	var asked []string
	c := newClient(t, streams(t, &asked, output(0, "one", false)), client.Options{})
	want := errors.New("broken pipe")
	if err := c.FollowOutput(t.Context(), "queue-1", 0, func(api.Output) error { return want }); err != want {
		t.Fatal(err)
	}
	if err := c.FollowOutput(t.Context(), "queue-1", 0, func(api.Output) error { return nil }); err == nil {
		t.Fatal("the director's refusal was lost")
	}
}
