package client

import (
	"context"
	"time"
)

// patience decides whether a call that outlives the director goes on.
type patience struct {
	c    *Client
	last time.Time // of the last answer
	try  int       // failures in a row
}

func (c *Client) newPatience() *patience { return &patience{c: c, last: time.Now()} }

// answered says that the director lives.
func (p *patience) answered() { p.last, p.try = time.Now(), 0 }

// wait pauses before the next try. It returns err itself when that will not
// go away or patience is at its end, and the context's error when that ends.
func (p *patience) wait(ctx context.Context, err error) error {
	if !passing(err) || time.Since(p.last) > p.c.opts.Patience {
		return err
	}
	p.try++
	return p.c.pause(ctx, p.try, err)
}
