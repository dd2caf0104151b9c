package agentd

import (
	"errors"
	"sync"

	"github.com/signalbox-ai/signalbox/client"
)

// directors are those that an agent may ask, one of them at a time: they share
// a store, and any of them does.
type directors struct {
	all []*client.Client

	mu  sync.Mutex
	now int
}

func (d *directors) current() *client.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[d.now]
}

// do asks the current director. Where it does not answer, or not as one, the
// next call asks the next one.
func (d *directors) do(f func(*client.Client) error) error {
	c := d.current()
	err := f(c)
	if err != nil && elsewhere(err) {
		d.mu.Lock()
		if d.all[d.now] == c {
			d.now = (d.now + 1) % len(d.all)
		}
		d.mu.Unlock()
	}
	return err
}

// once asks each director in turn until one has answered.
func (d *directors) once(f func(*client.Client) error) (err error) {
	for range d.all {
		if err = d.do(f); err == nil || !elsewhere(err) {
			return err
		}
	}
	return err
}

// elsewhere reports whether another director may answer otherwise.
func elsewhere(err error) bool {
	var e *client.Error
	return client.IsUnreachable(err) || (errors.As(err, &e) && (e.Status >= 500 || e.Body.Error == client.CodeUnexpectedAnswer))
}
