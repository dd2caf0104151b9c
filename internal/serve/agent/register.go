package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/serve"
)

// retryEvery is how often a director that is not reached is tried again.
const retryEvery = 2 * time.Second

// directorToken is director-token.json in an agent's folder: the token by which
// a director knows the agent.
type directorToken struct {
	Director string `json:"director"`
	Token    string `json:"token"`
}

// getToken gets the agent a token of its own if it was given the director owner's: what
// the agent presents, and what its runs can read, has the rights of the agent only. It
// waits until the director answers, unless an earlier token is still valid.
func (p *process) getToken(ctx context.Context) error {
	if !p.o.Owner {
		return nil
	}
	path := filepath.Join(p.folder, "director-token.json")
	name := p.cfg.Agent.Name
	var kept directorToken
	if serve.ReadJSON(path, &kept) == nil && kept.Director == p.o.Director && mayBeValid(ctx, p.o.Director, kept.Token) {
		p.o.Token, p.o.Owner = kept.Token, false
		return nil
	}
	c, err := client.New(p.o.Director, client.Options{Token: p.o.Token, Tries: 1, UserAgent: "signalbox-agent/" + p.version})
	if err != nil {
		return err
	}
	for told := ""; ; serve.Sleep(ctx, retryEvery) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		made, err := c.CreateToken(ctx, api.NewToken{Name: "agent:" + name, Agent: name})
		switch {
		case err == nil:
			p.o.Token, p.o.Owner = made.Secret, false
			return serve.WriteJSON(path, directorToken{p.o.Director, made.Secret})
		case !client.IsUnreachable(err):
			return fmt.Errorf("the director gives agent %s no token: %w", name, err)
		}
		p.warnOnce(&told, err)
	}
}

// mayBeValid reports whether a director accepts a token, or cannot be asked now.
func mayBeValid(ctx context.Context, url, token string) bool {
	c, err := client.New(url, client.Options{Token: token, Tries: 1, Timeout: 5 * time.Second})
	if err != nil {
		return false
	}
	_, err = c.Me(ctx)
	return client.Code(err) != "unauthorized"
}

// warnOnce logs that the director is not reached, unless the last error was the same.
func (p *process) warnOnce(told *string, err error) {
	if err.Error() == *told {
		return
	}
	*told = err.Error()
	p.log.Warn("director not reached, trying again", "director", p.o.Director, "error", err, "cure", agentd.Cure(err, p.cfg.Agent.Name))
}

// findDirector waits until there is a director of this user, if none is named and none
// ran at the start.
func (p *process) findDirector(ctx context.Context) (err error) {
	if !p.o.Known {
		p.log.Info("no director is named, and none of this user runs here: waiting for one, or to be discovered", "cure", "signalbox up, or --director URL")
	}
	for !p.o.Known {
		serve.Sleep(ctx, retryEvery)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.o, err = p.o.Find(); err != nil {
			return err
		}
	}
	return p.getToken(ctx)
}

// renewToken gets another token after the director has refused the agent's: the agent
// was started before the director, whose file now says where the owner's token is, or
// the director has lost its store.
func (p *process) renewToken(ctx context.Context) bool {
	o, err := p.o.Find()
	if err != nil || !o.Owner || o.Director != p.o.Director {
		return false
	}
	before := p.o
	p.o = o
	if err := p.getToken(ctx); err != nil {
		p.o = before
		return false
	}
	return true
}

// inboundToken is the token that callers of the agent present if none is configured:
// the one of its last start, so that a director that follows a run of then is not
// refused, else a new one. The agent registers with it.
func inboundToken(folder string) string {
	var last File
	if serve.ReadJSON(filePath(folder), &last) == nil && last.Token != "" {
		return last.Token
	}
	return rand.Text()
}

// keepRegistered registers the agent with its director, then sends heartbeats: at the
// interval that the director asks for, and at once when the status changes.
func (p *process) keepRegistered(ctx context.Context, d *agentd.Daemon, f File) {
	if err := p.findDirector(ctx); err != nil {
		if ctx.Err() == nil {
			p.log.Error("not registered", "error", err)
		}
		return
	}
	c, err := client.New(p.o.Director, client.Options{Token: p.o.Token})
	if err != nil {
		p.log.Error("not registered", "director", p.o.Director, "error", err)
		return
	}
	known := false
	for told := ""; ctx.Err() == nil; serve.Sleep(ctx, retryEvery) {
		s := d.Status()
		_, err := c.RegisterAgent(ctx, api.RegisterAgent{
			Name: f.Name, Kind: f.Kind, URL: f.URL, Slots: s.Slots, Fencing: true, Proof: s.Proof, Token: f.Token, Version: s.Version, WorkDir: s.WorkDir,
		})
		if err == nil {
			p.log.Info("registered", "director", p.o.Director, "name", f.Name)
			told, known = "", true
			err = heartbeats(ctx, c, d, f)
		}
		if client.Code(err) == "unauthorized" && p.renewToken(ctx) {
			if c, err = client.New(p.o.Director, client.Options{Token: p.o.Token}); err == nil {
				continue
			}
		}
		if ctx.Err() == nil && err != nil {
			p.warnOnce(&told, err)
		}
	}
	if known {
		p.sayStopping(ctx, c, f)
	}
}

// heartbeats sends heartbeats until one fails.
func heartbeats(ctx context.Context, c *client.Client, d *agentd.Daemon, f File) error {
	interval := 10 * time.Second
	var told *api.AgentAccount
	for {
		changed := d.Changed()
		s := d.Status()
		beat := api.Heartbeat{State: s.State, URL: f.URL, CurrentTasks: s.CurrentTasks, Full: s.Full}
		if !reflect.DeepEqual(s.Account, told) {
			beat.Account = s.Account
		}
		answer, err := c.Heartbeat(ctx, f.Name, beat)
		if err != nil {
			return err
		}
		told = s.Account
		if answer.IntervalSeconds > 0 {
			interval = time.Duration(answer.IntervalSeconds) * time.Second
		}
		timer := time.NewTimer(interval)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// sayStopping tells the director that the agent stops, so that it offers no task and
// need not find out by itself.
func (p *process) sayStopping(ctx context.Context, c *client.Client, f File) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := c.Heartbeat(ctx, f.Name, api.Heartbeat{State: "stopping", URL: f.URL}); err != nil {
		p.log.Info("the director was not told that this agent stops", "error", err)
	}
}

// pullTimeout bounds a request of an agent that pulls, apart from the wait of a claim:
// a connection that a router has dropped is given up soon.
const pullTimeout = 20 * time.Second

// pull runs an agent that nobody can connect to: it asks directors for its tasks.
func (p *process) pull(ctx context.Context) error {
	a := &p.cfg.Agent
	if a.Terminal {
		return errors.New("agent.terminal: nobody can connect to an agent that pulls, so it can offer no terminal: leave out --terminal or --pull")
	}
	if os.Getenv(LingerEnv) != "" {
		return fmt.Errorf("%s is for agents that are asked: one that pulls asks for itself", LingerEnv)
	}
	if p.o.Director == "" {
		return errors.New("no director is named, and none of yours runs here: an agent that pulls needs one to ask: give --director URL")
	}
	var directors []*client.Client
	for _, url := range append([]string{p.o.Director}, a.Directors...) {
		c, err := client.New(url, client.Options{Token: p.o.Token, UserAgent: "signalbox-agent/" + p.version, Timeout: pullTimeout})
		if err != nil {
			return err
		}
		directors = append(directors, c)
	}
	daemon, err := p.daemon(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.o.Out, "Signalbox agent %s (%s) asks %s for tasks\n", a.Name, a.Kind, p.o.Director)
	return daemon.Pull(ctx, directors)
}
