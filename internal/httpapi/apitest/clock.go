package apitest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clock is a clock that only moves when a test advances it.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// WithClock makes the responses of a director the same in every run: it uses the
// clock, set to a fixed time, and random bytes from a fixed seed.
func WithClock(c *Clock) func(*Options) {
	c.at = time.Date(2025, 1, 17, 10, 0, 0, 0, time.UTC)
	return func(o *Options) {
		o.Engine.Now = c.Now
		o.Engine.Random = &sameBytes{from: rand.NewChaCha8([32]byte{1})}
	}
}

// sameBytes reads the same pseudo-random bytes in every run.
type sameBytes struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func (s *sameBytes) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from.Read(b)
}

// WantBody fails unless the response has that status and body.
func WantBody(t *testing.T, got Reply, status int, want string) {
	t.Helper()
	got.Want(t, status, nil)
	if strings.TrimSpace(string(got.Body)) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
}
