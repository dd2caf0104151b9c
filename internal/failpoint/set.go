package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The environment variables.
const (
	EnvPoints = "SIGNALBOX_FAILPOINTS"
	EnvFired  = "SIGNALBOX_FAILPOINTS_FIRED"
)

// pause is the length of a delay: longer than the delay before a retry, shorter than any timeout.
const pause = 300 * time.Millisecond

// Set is the points that act. The zero Set has none.
type Set struct {
	mu    sync.Mutex
	armed map[string]*armed
	fired string // file; "" for none
}

type armed struct {
	action Action
	left   int // hits until it acts
}

// FromEnv reads the environment.
func FromEnv() (*Set, error) {
	s := &Set{armed: map[string]*armed{}, fired: os.Getenv(EnvFired)}
	for _, text := range strings.FieldsFunc(os.Getenv(EnvPoints), func(r rune) bool { return r == ',' }) {
		point, rest, _ := strings.Cut(text, "=")
		action, nth, counted := strings.Cut(rest, "@")
		n := 1
		if counted {
			var err error
			if n, err = strconv.Atoi(nth); err != nil || n < 1 {
				return nil, fmt.Errorf("%s: %q: want point=action or point=action@N, N from 1", EnvPoints, text)
			}
		}
		if !slices.Contains(Actions(point), Action(action)) {
			return nil, fmt.Errorf("%s: %q: the point %q can do %v; there are the points %v", EnvPoints, text, point, Actions(point), Points())
		}
		s.armed[point] = &armed{Action(action), n}
	}
	return s, nil
}

// Hit is called when a point is reached. It returns what the caller must do: Fail, Lose or "". It kills,
// exits and delays by itself.
func (s *Set) Hit(point string) Action {
	switch action := s.take(point); action {
	case Kill:
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // it never returns
	case Exit:
		os.Exit(2)
		return ""
	case Delay:
		time.Sleep(pause)
		return ""
	default:
		return action
	}
}

// take is the action of a point at this hit; "" for none.
func (s *Set) take(point string) Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.armed[point]
	if a == nil {
		return ""
	}
	if a.left--; a.left > 0 {
		return ""
	}
	delete(s.armed, point)
	s.note(point + " " + string(a.action) + "\n")
	return a.action
}

// note writes to the file what fires, before it does.
func (s *Set) note(line string) {
	if s.fired == "" {
		return
	}
	f, err := os.OpenFile(s.fired, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failpoint:", err)
	}
}

func kindOf(point string) string { kind, _, _ := strings.Cut(point, "."); return kind }

func isAfter(point string) bool { return strings.HasSuffix(point, ".after") }
