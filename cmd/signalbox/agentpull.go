package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// pullTimeout bounds a request of an agent that pulls, the wait of a claim
// apart: what a router on the way has forgotten is given up soon.
const pullTimeout = 20 * time.Second

// pullAgent is the agent role where nobody can connect to the agent: it asks
// directors for its tasks.
func pullAgent(ctx context.Context, cfg config.Config, o cli.AgentOptions, folder string, log *slog.Logger) error {
	a := &cfg.Agent
	if a.Terminal {
		return errors.New("agent.terminal: nobody can connect to an agent that pulls, so it can offer no terminal: leave out --terminal or --pull")
	}
	if os.Getenv(lingerEnv) != "" {
		return fmt.Errorf("%s is for agents that are asked: one that pulls asks for itself", lingerEnv)
	}
	if o.Director == "" {
		return errors.New("no director is named, and none of yours runs here: an agent that pulls needs one to ask: give --director URL")
	}
	directors, err := pullsFrom(append([]string{o.Director}, a.Directors...), o.Token)
	if err != nil {
		return err
	}
	otel := telemetry.StartOTel(ctx, telemetry.OTelOptions{Service: "signalbox-agent", Version: version, Log: log})
	defer func() {
		if err := otel.Close(); err != nil {
			log.Warn("what OpenTelemetry had left was not sent", "error", err)
		}
	}()
	c := daemonConfig(cfg, o, folder, log)
	c.Pull, c.Traces = true, otel.Traces()
	daemon, err := agentd.New(c)
	if err != nil {
		return fmt.Errorf("agent %s: %w", a.Name, err)
	}
	fmt.Fprintf(o.Out, "Signalbox agent %s (%s) asks %s for tasks\n", a.Name, a.Kind, o.Director)
	ctx, stop := context.WithCancel(ctx)
	followed := followSteps(ctx, &cfg, c.Runner.LLM.Steps, log)
	defer func() { stop(); followed() }()
	return daemon.Pull(ctx, directors)
}

func pullsFrom(urls []string, token string) ([]*client.Client, error) {
	all := make([]*client.Client, len(urls))
	for i, url := range urls {
		c, err := client.New(url, client.Options{Token: token, UserAgent: "signalbox-agent/" + version, Timeout: pullTimeout})
		if err != nil {
			return nil, err
		}
		all[i] = c
	}
	return all, nil
}
