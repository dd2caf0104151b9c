package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// target is the address of a director and the token for it.
type target struct {
	url   string
	token string
	found bool // a director is configured or runs on this host
	owner bool // the token is the owner's, from the file of the local director
}

// target finds the director: flag, environment, configuration, or the one that
// runs on this host. A token is never sent to a guessed address.
func (a *app) target() (target, error) {
	token, err := a.tokenFromFlagsOrEnv()
	t := target{url: a.flagOrEnv(a.director, "SIGNALBOX_DIRECTOR"), token: token}
	if a.config != "" {
		var cfg config.Config
		cfg, err = a.load(config.Sources{NoTools: true})
		t.url, t.token = cfg.Director, cfg.Token
	}
	if err != nil {
		return t, err
	}
	return a.locate(t)
}

// tokenFromFlagsOrEnv is the token of a flag, else of the environment.
func (a *app) tokenFromFlagsOrEnv() (string, error) {
	if a.token != "" && a.tokenFile != "" {
		return "", usage("--token and --token-file exclude each other: give one of them")
	}
	if a.token != "" {
		return a.token, nil
	}
	path := a.tokenFile
	if path == "" {
		token, file := a.flagOrEnv("", "SIGNALBOX_TOKEN"), a.flagOrEnv("", "SIGNALBOX_TOKEN_FILE")
		if token != "" && file != "" {
			return "", usage("SIGNALBOX_TOKEN and SIGNALBOX_TOKEN_FILE are both set: give one of them")
		}
		if path = file; path == "" {
			return token, nil
		}
	}
	token, err := config.ReadSecret(a.absPath(path))
	if err != nil {
		return "", usage("the token file: %s", err)
	}
	return token, nil
}

// flagOrEnv is a flag's value, else the environment's.
func (a *app) flagOrEnv(flag, env string) string {
	if value, ok := a.io.Env(env); ok && flag == "" {
		return value
	}
	return flag
}

// locate fills in URL and token from the files that this user's directors write.
// The token of such a file is sent to that director only.
func (a *app) locate(t target) (target, error) {
	local, err := a.directorFile(t.url)
	if err != nil && (t.url == "" || t.token == "") {
		return t, err
	}
	t.url = cmp.Or(t.url, local.URL)
	t.found = t.url != ""
	if t.token == "" && local.TokenFile != "" && sameURL(t.url, local.URL) {
		t.token, err = config.ReadSecret(local.TokenFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, fmt.Errorf("the director's token: %w", err)
		}
		t.owner = t.token != ""
	}
	return t, nil
}

// errNoDirector is the error of a command that finds no director.
var errNoDirector = &fault{exit: exitUnreachable, code: "unreachable", message: "no director is configured, and none of yours runs here", retryable: true,
	hint: "start one with signalbox up, or name one with --director URL or SIGNALBOX_DIRECTOR"}

func sameURL(a, b string) bool {
	plain := func(s string) string {
		if !strings.Contains(s, "://") {
			s = "http://" + s
		}
		return strings.ToLower(strings.TrimRight(s, "/"))
	}
	return plain(a) == plain(b)
}

// directorFile reads the file of a director on this host: of the one at url, or of
// the default one. Without a file the result is empty.
func (a *app) directorFile(url string) (api.DirectorFile, error) {
	home := config.Home(a.io.Env)
	if home == "" {
		return api.DirectorFile{}, nil
	}
	first, err := readDirectorFile(config.DirectorFile(home))
	if url == "" || err == nil && sameURL(url, first.URL) {
		return first, err
	}
	return readDirectorFile(config.FurtherDirectorFile(home, url))
}

func readDirectorFile(path string) (out api.DirectorFile, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return api.DirectorFile{}, failure(exitError, "error", "%s cannot be read: %v", path, err).withHint("remove the file, or name the director with --director")
	}
	return out, nil
}

// load reads the configuration. Client commands read a file only if --config names
// it, so that they still work when the server's configuration is broken.
func (a *app) load(src config.Sources) (config.Config, error) {
	for _, f := range []config.Flag{
		{Name: "--director", Key: "director", Values: []string{a.director}},
		{Name: "--token", Key: "token", Values: []string{a.token}},
		{Name: "--token-file", Key: "token_file", Values: []string{a.tokenFile}},
	} {
		if f.Values[0] != "" {
			src.Flags = append(src.Flags, f)
		}
	}
	src.File, src.Dir, src.Env = a.config, a.io.Dir, a.io.Env
	if a.io.TTY != nil {
		src.Ask = func(u config.Untrusted) (bool, error) {
			return a.askYesNo(context.Background(), fmt.Sprintf("%s %s. Do you trust the file in its present form?", u.Path, u.Does()))
		}
	}
	return config.Load(src)
}

var traceparentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// client makes a client for the director.
func (a *app) client(opts client.Options) (*client.Client, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	if !t.found {
		return nil, errNoDirector
	}
	opts.Token = t.token
	opts.UserAgent = "signalbox-cli/" + a.roles.Version
	if trace, _ := a.io.Env("TRACEPARENT"); traceparentForm.MatchString(trace) { // set in the executions of agents
		opts.Traceparent = trace
	}
	c, err := client.New(t.url, opts)
	if err != nil {
		return nil, usage("%s", err)
	}
	return c, nil
}

// retryingClient makes a client that retries while the director is gone, and says
// so at most every 10 seconds.
func (a *app) retryingClient() (*client.Client, error) {
	var mu sync.Mutex // calls may retry concurrently
	var last time.Time
	return a.client(client.Options{OnRetry: func(err error, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if now := a.io.Now(); client.IsUnreachable(err) && now.Sub(last) > 10*time.Second {
			last = now
			a.note("%v; trying again", err)
		}
	}})
}

func (a *app) trustCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Trust the configuration file of a working folder",
		Long: "Trust the signalbox.yaml of a working folder, by default of the current one. From then on its commands, jobs,\n" +
			"director, token, store and the like take effect. Read the file first. The trust holds for its present content and\n" +
			"place: after a change the question comes again. Files that --config names and ~/.signalbox/config.yaml need no trust.\n\n" +
			"The checks in a repository's .signalbox.yaml, too, take effect only once that file is trusted.",
		RunE: func(_ *cobra.Command, args []string) error {
			path := a.absPath(cmp.Or(firstArg(args), "signalbox.yaml"))
			does, err := config.Trust(path, a.io.Env)
			switch {
			case err != nil:
			case does == "":
				a.say("There is nothing to trust: %s is trusted already, or sets nothing that needs trust.", clean(path))
			default:
				a.say("Trusted: %s (it %s)", clean(path), clean(does))
			}
			return err
		},
		ValidArgsFunction: completeFiles,
	}
}
