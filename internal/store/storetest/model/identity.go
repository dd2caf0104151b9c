package model

import (
	"context"
	"maps"
	"slices"

	"github.com/signalbox-ai/signalbox"
)

// PutToken stores a token by id.
func (s *Store) PutToken(ctx context.Context, t signalbox.Token) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.tokens[t.ID] = copyToken(t)
	return nil
}

// DeleteToken deletes a token and reports whether it existed.
func (s *Store) DeleteToken(ctx context.Context, id string) (was bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	_, was = s.tokens[id]
	delete(s.tokens, id)
	return was, nil
}

// Tokens lists the tokens by id.
func (s *Store) Tokens(ctx context.Context) ([]signalbox.Token, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []signalbox.Token
	for _, id := range slices.Sorted(maps.Keys(s.tokens)) {
		list = append(list, copyToken(s.tokens[id]))
	}
	return list, nil
}

// PutUser stores a user by id.
func (s *Store) PutUser(ctx context.Context, u signalbox.User) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.users[u.ID] = copyUser(u)
	return nil
}

// DeleteUser deletes a user and reports whether it existed.
func (s *Store) DeleteUser(ctx context.Context, id string) (was bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	_, was = s.users[id]
	delete(s.users, id)
	return was, nil
}

// Users lists the users by id.
func (s *Store) Users(ctx context.Context) ([]signalbox.User, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []signalbox.User
	for _, id := range slices.Sorted(maps.Keys(s.users)) {
		list = append(list, copyUser(s.users[id]))
	}
	return list, nil
}

func copyToken(t signalbox.Token) signalbox.Token {
	t.Hash, t.Scopes, t.Agents = slices.Clone(t.Hash), slices.Clone(t.Scopes), slices.Clone(t.Agents)
	return t
}

func copyUser(u signalbox.User) signalbox.User {
	u.Agents = slices.Clone(u.Agents)
	return u
}
