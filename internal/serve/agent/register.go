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

// retryEvery is the interval of retries while the director cannot be reached.
const retryEvery = 2 * time.Second

// directorToken is the content of director-token.json in an agent's folder: the token with
// which the agent authenticates to a director.
type directorToken struct {
	Director string `json:"director"`
	Token    string `json:"token"`
}

// getToken gets the agent a token of its own if it was started with the token of the
// director's owner. The token that the agent sends, and that its runs can read, then has
// only the rights of the agent. It waits until the director answers, unless an earlier
// token is still valid.
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
			return fmt.Errorf("the director refuses agent %s a token: %w", name, err)
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

// warnOnce logs that the director cannot be reached, unless the last error was the same.
func (p *process) warnOnce(told *string, err error) {
	if err.Error() == *told {
		return
	}
	*told = err.Error()
	p.log.Warn("director not reached, trying again", "director", p.o.Director, "error", err, "cure", agentd.Cure(err, p.cfg.Agent.Name))
}

// findDirector waits for a director of this user, if none is configured and none ran at
// the start.
func (p *process) findDirector(ctx context.Context) (err error) {
	if !p.o.Known {
		p.log.Info("no director is configured, and none of this user runs here: waiting for one, or to be discovered", "cure", "signalbox up, or --director URL")
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

// renewToken gets another token after the director has refused the agent's. The agent may
// have been started before the director, whose file now says where the owner's token is,
// or the director has lost its store.
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

// inboundToken is the token for callers of the agent if none is configured: that of the
// agent's last start, so that a director that still follows a run is not refused, else a
// new one. The agent passes it to the director when it registers.
func inboundToken(folder string) string {
	var last File
	if serve.ReadJSON(filePath(folder), &last) == nil && last.Token != "" {
		return last.Token
	}
	return rand.Text()
}

// keepRegistered registers the agent with its director, then sends heartbeats at the
// interval that the director requests, and at once when the status changes.
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

// sayStopping tells the director that the agent stops, so that the director offers it no
// more tasks.
func (p *process) sayStopping(ctx context.Context, c *client.Client, f File) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := c.Heartbeat(ctx, f.Name, api.Heartbeat{State: "stopping", URL: f.URL}); err != nil {
		p.log.Info("could not tell the director that this agent stops", "error", err)
	}
}

// pullTimeout limits a request of an agent that pulls, without the wait of a claim, so
// that it soon gives up a connection that a router has dropped.
const pullTimeout = 20 * time.Second

// pull runs an agent that accepts no connections: it polls directors for its tasks.
func (p *process) pull(ctx context.Context) error {
	a := &p.cfg.Agent
	if a.Terminal {
		return errors.New("agent.terminal: an agent that pulls accepts no connections, so it can offer no terminal: leave out --terminal or --pull")
	}
	if os.Getenv(LingerEnv) != "" {
		return fmt.Errorf("%s is not for agents that pull", LingerEnv)
	}
	if p.o.Director == "" {
		return errors.New("no director is configured, and none of yours runs here, but an agent that pulls needs one: give --director URL")
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
	fmt.Fprintf(p.o.Out, "Signalbox agent %s (%s) pulls tasks from %s\n", a.Name, a.Kind, p.o.Director)
	return daemon.Pull(ctx, directors)
}
