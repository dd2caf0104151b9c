package steplimit

import (
	"container/list"
	"context"
	"sync"
)

// line lets so many in at once and the others in order.
type line struct {
	mu      sync.Mutex
	free    int
	waiting list.List // of chan struct{}, closed when it is one's turn
}

// place is a place in the line, inside or waiting.
type place struct {
	in    *line
	turn  chan struct{} // nil: inside from the start
	entry *list.Element
}

// join takes a place at once, so that who joins first goes first, however
// long it takes them to wait for their turn.
func (l *line) join() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{in: l}
	if l.free > 0 {
		l.free--
		return p
	}
	p.turn = make(chan struct{})
	p.entry = l.waiting.PushBack(p.turn)
	return p
}

// wait returns when it is the place's turn. If ctx ends first the place is
// given up and the error is the context's.
func (p *place) wait(ctx context.Context) error {
	if p.turn == nil {
		return nil
	}
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	select {
	case <-p.turn: // its turn came at the same moment; the next takes it
		p.in.next()
	default:
		p.in.waiting.Remove(p.entry)
	}
	return ctx.Err()
}

// leave lets the next one in.
func (p *place) leave() {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.next()
}

// next hands a place on. The caller holds mu.
func (l *line) next() {
	first := l.waiting.Front()
	if first == nil {
		l.free++
		return
	}
	l.waiting.Remove(first)
	close(first.Value.(chan struct{}))
}
