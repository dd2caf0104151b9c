package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
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

func (c *child) ask(ctx context.Context, f agentFile) (s api.AgentStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return s, askAgent(ctx, f, http.MethodGet, "/status", nil, &s)
}

// agentRefused is an answer of an agent other than success.
type agentRefused struct{ status int }

func (e *agentRefused) Error() string { return fmt.Sprintf("it answered %d", e.status) }

// askAgent makes one request to a child.
func askAgent(ctx context.Context, f agentFile, method, path string, body, answer any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, f.URL+path, &sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.Token)
	req.Header.Set("Content-Type", "application/json")
	asking := &http.Client{Transport: handshake.ToAgent(&http.Transport{DisableKeepAlives: true}, f.URL, f.Token, f.Proof)}
	resp, err := asking.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return &agentRefused{resp.StatusCode}
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

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
	defer closeOTel(otel, log)
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

// handedEnv says that the process is handed the secret part of its environment
// in an open file (handedFile): what is in the environment of a program from its
// start is shown by the system to root, and to others of the user until the
// program forbids it.
const handedEnv = "SIGNALBOX_ENV_HANDED"

// handOver gives a program, another agent of ours, this environment without its
// secrets, and these beside it. Close the file once the program has started.
func handOver(cmd *exec.Cmd, env, secrets []string) (io.Closer, error) {
	hidden := append(config.SecretVariables(""), seal.EnvKey, tokenFileEnv)
	ofAgents := config.SecretVariables("agent.")
	handed := []string{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(ofAgents, name):
			handed = append(handed, kv)
		case !slices.Contains(hidden, name):
			cmd.Env = append(cmd.Env, kv)
		}
	}
	file, err := proc.TextFile(strings.Join(append(handed, secrets...), "\x00"))
	if err != nil {
		return nil, fmt.Errorf("hand over its secrets: %w", err)
	}
	name, err := proc.PassFile(cmd, file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("hand over its secrets: %w", err)
	}
	cmd.Env = append(cmd.Env, handedEnv+"="+name)
	return file, nil
}

// takeOver reads what handOver handed to this process into its environment.
func takeOver() error {
	name := os.Getenv(handedEnv)
	if name == "" {
		return nil
	}
	file, err := proc.InheritedFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", handedEnv, err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("%s: read the environment that was handed over: %w", handedEnv, err)
	}
	for kv := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("%s: %w", handedEnv, err)
		}
	}
	return os.Unsetenv(handedEnv)
}
