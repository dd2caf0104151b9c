package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

const directorsToken = "a-token-of-the-directors"

// balancer starts a proxy that sends each request to the next director.
func (c *cluster) balancer(all ...*process) string {
	c.Helper()
	var proxies []*httputil.ReverseProxy
	for _, p := range all {
		at := must(url.Parse(p.url))(c)
		proxies = append(proxies, &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }})
	}
	var n atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxies[n.Add(1)%int64(len(proxies))].ServeHTTP(w, r)
	}))
	c.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL
}

// pulls starts an agent of kind command that pulls its tasks from url; their prompts
// are scripts. It returns the path of its log of executions.
func (c *cluster) pulls(name, url string, slots int) (executions string) {
	c.Helper()
	root := c.TempDir()
	executions = filepath.Join(root, "executions")
	cfg := agentd.Config{
		Name: name, Kind: "command", DataDir: filepath.Join(root, "data"), WorkDir: root, Home: root, Slots: slots, Pull: true, ExecLog: executions,
		KillGrace: 200 * time.Millisecond,
	}
	cfg.Runner.Command = []string{"/bin/sh", "-c", "{prompt}"}
	daemon, err := agentd.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	// The balancer is a proxy on the directors' host, so there is no proof.
	directors := []*client.Client{must(client.New(url, client.Options{Token: directorsToken, Proof: client.ProofOff, Timeout: 20 * time.Second}))(c)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- daemon.Pull(ctx, directors) }()
	c.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			c.Error(err)
		}
	})
	return executions
}

// prints waits until a director shows what a task has printed.
func (c *cluster) prints(p *process, id, text string) {
	c.Helper()
	testkit.Wait(c, "director "+p.name+" shows what task "+id+" printed", func() bool {
		out, err := p.Output(c.Context(), id, 0)
		return err == nil && strings.Contains(out.Text, text)
	})
}

// knows waits until a director shows an agent as idle.
func (c *cluster) knows(p *process, agent string) {
	c.Helper()
	testkit.Wait(c, "director "+p.name+" knows agent "+agent, func() bool {
		all, err := p.Agents(c.Context())
		return err == nil && len(all) == 1 && all[0].Name == agent && all[0].State == "idle"
	})
}

func (c *cluster) script(p *process, agent, script string) string {
	c.Helper()
	return must(p.Submit(c.Context(), api.SubmitRequest{Prompt: script, Agent: agent}, client.SubmitOptions{}))(c).QueueID
}

// An agent that pulls may reach another director with each request. Its tasks are
// followed, cancelled and ended through any director, and the death of a director
// does not affect it.
func TestAgentThatPullsBehindABalancer(t *testing.T) {
	overServers(t, func(c *cluster) {
		c.vars = append(c.vars, "SIGNALBOX_TOKEN="+directorsToken)
		all := []*process{c.start("a"), c.start("b")}
		for _, p := range all {
			p.Client = must(client.New(p.url, client.Options{Token: directorsToken}))(c)
		}
		executions := c.pulls("far", c.balancer(all...), 2)
		for _, p := range all {
			c.knows(p, "far")
		}
		gate := filepath.Join(c.TempDir(), "gate")
		id := c.script(all[0], "far", "echo begun; until [ -e "+gate+" ]; do sleep 0.05; done; echo done")
		c.working(all[1], id)
		for _, p := range all {
			c.prints(p, id, "begun\n")
		}
		cancelled := c.script(all[1], "far", "sleep 100")
		c.working(all[0], cancelled)
		begun := time.Now()
		must(all[0].Cancel(c.Context(), cancelled))(c)
		c.ends(all[1], cancelled, signalbox.Cancelled)
		if took := time.Since(begun); took > 20*time.Second {
			c.Errorf("the cancel took %s", took)
		}
		holder := c.holder("far", all...)
		rest := others(all, holder)[0]
		holder.kill()
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			c.Fatal(err)
		}
		got := c.ends(rest, id, signalbox.Completed)
		if got.Attempts != 0 || got.Result.Output != "begun\ndone\n" {
			c.Errorf("%d attempts, %q", got.Attempts, got.Result.Output)
		}
		c.ends(rest, c.script(rest, "far", "echo next"), signalbox.Completed)
		text, err := os.ReadFile(executions)
		if err != nil {
			c.Fatal(err)
		}
		if n := strings.Count(string(text), `"start"`); n != 3 {
			c.Errorf("%d executions of 3 tasks", n)
		}
	})
}
