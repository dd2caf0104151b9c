package director

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// prefer is what the header Prefer (RFC 7240) says of when to answer. What is
// not understood is ignored, as the RFC wants.
type prefer struct {
	respondAsync bool
	limited      bool
	wait         time.Duration // where limited
}

// forever is longer than any task may wait and run.
const forever = 10 * 365 * 24 * time.Hour

func preferOf(r *http.Request) (p prefer) {
	for _, line := range r.Header.Values("Prefer") {
		for _, one := range strings.Split(line, ",") {
			one, _, _ = strings.Cut(one, ";")
			name, value, _ := strings.Cut(one, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				p.respondAsync = true
			case "wait":
				seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
				if err == nil && !p.limited {
					p.limited, p.wait = true, time.Duration(seconds)*time.Second
				}
			}
		}
	}
	return p
}

// async reports whether the answer is to come as soon as the task is stored.
func (p prefer) async() bool { return (p.respondAsync && !p.limited) || (p.limited && p.wait == 0) }

// patience is how long the caller wants to wait at most.
func (p prefer) patience() time.Duration {
	if p.limited {
		return p.wait
	}
	return forever
}

// applied is the value of Preference-Applied on an answer that came early for
// the caller's sake; "" where that was not why.
func (p prefer) applied() string {
	switch {
	case p.limited:
		return "wait=" + strconv.Itoa(int(p.wait/time.Second))
	case p.respondAsync:
		return "respond-async"
	}
	return ""
}
