package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/cli"
)

// directorToken is director-token.json in an agent's folder: the token by which
// a director knows the agent.
type directorToken struct {
	Director string `json:"director"`
	Token    string `json:"token"`
}

// asItself returns the options with a token of the agent's own, where they have
// that of the director's owner: what the agent shows, and what its runs can
// read, speaks for the agent and no more. It asks until the director answers,
// unless a token of an earlier start is there.
func asItself(ctx context.Context, o cli.AgentOptions, name, folder string, log *slog.Logger) (cli.AgentOptions, error) {
	if !o.Owner {
		return o, nil
	}
	path := filepath.Join(folder, "director-token.json")
	var kept directorToken
	if readJSON(path, &kept) == nil && kept.Director == o.Director && stillGood(ctx, o.Director, kept.Token) {
		o.Token, o.Owner = kept.Token, false
		return o, nil
	}
	c, err := client.New(o.Director, client.Options{Token: o.Token, Tries: 1, UserAgent: "signalbox-agent/" + version})
	if err != nil {
		return o, err
	}
	for told := ""; ; wait(ctx, 2*time.Second) {
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
		made, err := c.CreateToken(ctx, api.NewToken{Name: "agent:" + name, Agent: name})
		switch {
		case err == nil:
			o.Token, o.Owner = made.Secret, false
			return o, writeJSON(path, directorToken{o.Director, made.Secret})
		case !client.IsUnreachable(err):
			return o, fmt.Errorf("the director gives agent %s no token: %w", name, err)
		case err.Error() != told:
			told = err.Error()
			log.Warn("director not reached, trying again", "director", o.Director, "error", err, "cure", agentd.Cure(err, name))
		}
	}
}

// stillGood reports whether a director takes a token, also where it cannot be
// asked now.
func stillGood(ctx context.Context, url, token string) bool {
	c, err := client.New(url, client.Options{Token: token, Tries: 1, Timeout: 5 * time.Second})
	if err != nil {
		return false
	}
	_, err = c.Me(ctx)
	return client.Code(err) != "unauthorized"
}

// directorOf waits until there is a director of this user, where none is named
// and none ran at the start.
func directorOf(ctx context.Context, o cli.AgentOptions, name, folder string, log *slog.Logger) (cli.AgentOptions, error) {
	if !o.Known {
		log.Info("no director is named, and none of this user runs here: waiting for one, or to be discovered", "cure", "signalbox up, or --director URL")
	}
	for !o.Known {
		wait(ctx, 2*time.Second)
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
		var err error
		if o, err = o.Find(); err != nil {
			return o, err
		}
	}
	return asItself(ctx, o, name, folder, log)
}

// anotherToken gets an agent a token anew where its director refuses what it
// shows, or it shows nothing: it was started before the director, whose file
// says by now where the owner's token is, or the director has lost its store.
func anotherToken(ctx context.Context, o cli.AgentOptions, name, folder string, log *slog.Logger) (cli.AgentOptions, bool) {
	again, err := o.Find()
	if err != nil || !again.Owner || again.Director != o.Director {
		return o, false
	}
	again, err = asItself(ctx, again, name, folder, log)
	return again, err == nil
}

// inboundToken is the token that callers of an agent present, where none is
// given: the one of its last start, so that a director that follows a run of
// then is not turned away, else a new one. The agent registers with it.
func inboundToken(path string) string {
	var last agentFile
	if readJSON(path, &last) == nil && last.Token != "" {
		return last.Token
	}
	return rand.Text()
}
