package client

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// eventsOf reads a stream to its end.
func eventsOf(r io.Reader) (out []message, alive int, err error) {
	err = messages(r, func() { alive++ }, func(m message) bool {
		m.data = append([]byte(nil), m.data...)
		out = append(out, m)
		return len(out) < 1000
	})
	return out, alive, err
}

// FuzzMessages asserts that a stream of events parses the same however it is split
// into reads, and that parsed events survive a round trip.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		"id: 1\nevent: change\ndata: {}\n\n", "data: a\ndata: b\n\n", "data\n\n", ": alive\n\n", "id: 5\n\n", "data: x\r\n\r\n", "\n\n\n", "event:a\n", "retry: 1000\n\n",
		"data:  two spaces\n\n", "id\ndata:\n\n", "data: \xff\n\n", "data: half",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, alive, err := eventsOf(strings.NewReader(s))
		if err != nil && !errors.Is(err, errStreamEnded) {
			t.Fatalf("%q: %v", s, err)
		}
		if lines := strings.Count(s, "\n") + 1; alive > lines || len(got) > lines {
			t.Fatalf("%q: %d events in %d lines", s, len(got), lines)
		}
		bytewise, _, _ := eventsOf(iotest.OneByteReader(strings.NewReader(s)))
		if !reflect.DeepEqual(got, bytewise) {
			t.Fatalf("%q: %+v\nbut byte by byte %+v", s, got, bytewise)
		}
		var again strings.Builder
		for _, m := range got {
			again.WriteString("id: " + m.id + "\nevent: " + m.name + "\n")
			for _, line := range strings.Split(string(m.data), "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteString("\n")
		}
		same, _, _ := eventsOf(strings.NewReader(again.String()))
		if len(same) != len(got) {
			t.Fatalf("%q: %d events, written down again %d", s, len(got), len(same))
		}
		for i := range got {
			if got[i].id != same[i].id || got[i].name != same[i].name || string(got[i].data) != string(same[i].data) {
				t.Fatalf("%q: %+v\nwritten down again: %+v", s, got[i], same[i])
			}
		}
	})
}

// FuzzAddress asserts that an accepted address is an HTTP URL with a host and
// without a password, and parses to the same again. A refused one gets an error
// that says what is expected and does not repeat a password.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"127.0.0.1:8080", "http://a", "https://a/b/", "ftp://a", "http://u:swordfish@a", "http://u:swordfish%zz@a", "ftp://u:swordfish@a", "http://u:swordfish@", "http://u:swordfish@a?b", "http://a?b", "http://[::1]:80", "http://", "", "//a", "http://a:b", "%", "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseAddress(s)
		if err != nil {
			last := strings.LastIndex(s, "@")
			secret := last > 0 && strings.Contains(s[:last], "swordfish") && !strings.Contains(s[last:], "swordfish")
			if !strings.Contains(err.Error(), "director address") || (secret && strings.Contains(err.Error(), "swordfish")) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q is taken as %s", s, u)
		}
		if again, err := parseAddress(u.String()); err != nil || again.String() != u.String() {
			t.Fatalf("%q is taken as %s, and that as %s, %v", s, u, again, err)
		}
	})
}
