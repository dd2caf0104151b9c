package model

import (
	"context"
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// directorRows is the stored state of the directors.
type directorRows struct {
	directors map[string]store.Director // by ID
	holdings  map[string]store.Holding  // by agent
	heard     map[string]store.Heard    // by agent
}

func newDirectorRows() directorRows {
	return directorRows{map[string]store.Director{}, map[string]store.Holding{}, map[string]store.Heard{}}
}

// Beat renews the lease of a director and returns who else is alive.
func (s *Store) Beat(ctx context.Context, b store.Beat) (store.Peers, error) {
	if err := s.lock(ctx); err != nil {
		return store.Peers{}, err
	}
	defer s.mu.Unlock()
	p := &s.directors
	c, answer, err := store.StepBeat(store.BeatRows{Directors: p.list(), Holdings: p.held(&b), Heard: values(p.heard)}, b)
	if err != nil {
		return store.Peers{}, err
	}
	p.change(&c)
	for i := range answer.Heard {
		answer.Heard[i].Status = slices.Clone(answer.Heard[i].Status)
	}
	return answer, nil
}

func (p *directorRows) change(c *store.BeatChange) {
	for _, id := range c.Gone {
		delete(p.directors, id)
	}
	for _, d := range c.Put {
		p.directors[d.ID] = d
	}
	for _, agent := range c.Free {
		delete(p.holdings, agent)
	}
	for _, h := range c.Hold {
		p.holdings[h.Agent] = h
	}
	for _, agent := range c.Forgot {
		delete(p.heard, agent)
	}
	for _, h := range c.Heard {
		h.Status = slices.Clone(h.Status)
		p.heard[h.Agent] = h
	}
}

// held returns the holdings of the agents that a beat names.
func (p *directorRows) held(b *store.Beat) (list []store.Holding) {
	for _, agents := range [][]string{b.Take, b.Drop} {
		for _, agent := range agents {
			if h, ok := p.holdings[agent]; ok {
				list = append(list, h)
			}
		}
	}
	return list
}

// list lists the directors by ID.
func (p *directorRows) list() []store.Director { return values(p.directors) }

// removed deletes an agent's holding and status.
func (p *directorRows) removed(agent string) {
	delete(p.holdings, agent)
	delete(p.heard, agent)
}

// Directors lists the directors over the store.
func (s *Store) Directors(ctx context.Context) ([]store.Director, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.directors.list(), nil
}

// Holders returns which director holds each agent.
func (s *Store) Holders(ctx context.Context) (map[string]string, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return store.HoldersOf(s.directors.list(), values(s.directors.holdings)), nil
}

// values lists the values of a map, by key.
func values[V any](m map[string]V) (list []V) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}
