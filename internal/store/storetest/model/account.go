package model

import (
	"context"
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// ChangeAccount applies an event to an account.
func (s *Store) ChangeAccount(ctx context.Context, ev signalbox.AccountEvent) (store.AccountChange, error) {
	if err := s.lock(ctx); err != nil {
		return store.AccountChange{}, err
	}
	defer s.mu.Unlock()
	before := s.accounts[ev.Account]
	c := s.changeAccount(ev)
	if !before.Opens(&c.Account) {
		return c, nil
	}
	for _, t := range slices.Backward(s.parkedAt(signalbox.GateAccount, ev.Account)) {
		r := s.rows[t.ID]
		change, err := signalbox.Next(t, signalbox.Event{Kind: signalbox.EventUnpark, Now: ev.Now, Message: c.Account.String()})
		if err != nil {
			return c, err
		}
		t := change.Task
		t.Rev++
		t.Ready = false
		s.replace(r, t)
		s.settle(r, ev.Now)
		s.note(change.Entry)
		c.Unparked = append(c.Unparked, r.task)
	}
	return c, nil
}

func (s *Store) changeAccount(ev signalbox.AccountEvent) store.AccountChange {
	a, message := signalbox.NextAccount(s.accounts[ev.Account], ev)
	s.accounts[a.Name] = a.Clone()
	if message != "" {
		s.note(signalbox.Entry{At: ev.Now, Kind: signalbox.EventAccount, Account: a.Name, Message: message, By: ev.By()})
	}
	return store.AccountChange{Account: a.Clone(), Changed: message != ""}
}

// RemoveAccount deletes an account at which no task is parked.
func (s *Store) RemoveAccount(ctx context.Context, seen signalbox.Account, e signalbox.Entry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	a, known := s.accounts[seen.Name]
	parked := s.parkedAt(signalbox.GateAccount, seen.Name)
	switch {
	case !known:
		return store.NoAccount(seen.Name)
	case len(parked) > 0:
		return store.AccountInUse(seen.Name, len(parked))
	case a.State != seen.State || !a.Since.Equal(seen.Since):
		return store.AccountChanged(&a)
	}
	delete(s.accounts, seen.Name)
	s.note(e)
	return nil
}

// Accounts lists the accounts by name.
func (s *Store) Accounts(ctx context.Context) (list []signalbox.Account, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.accounts)) {
		list = append(list, s.accounts[name].Clone())
	}
	return list, nil
}
