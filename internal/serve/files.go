package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/atomicfile"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// perURLFile is the file in which the command line finds the token of the director at url,
// even if another director is the default.
func perURLFile(url string) string {
	return config.FurtherDirectorFile(config.Home(os.LookupEnv), url)
}

func directorFile() string { return config.DirectorFile(config.Home(os.LookupEnv)) }

// Announce writes the files in which the command line finds this director. A director
// that runs already stays the default.
func Announce(cfg config.Config, url string) error {
	if err := AnnounceGateway(cfg, url); err != nil {
		return err
	}
	if f, ok := DefaultDirector(); ok && f.URL != url && f.PID != os.Getpid() && proc.Running(f.PID) && healthy(f.URL) {
		return fmt.Errorf("%s is the director that runs at %s; use --director %s for this one", directorFile(), f.URL, url)
	}
	return WriteJSON(directorFile(), Self(cfg, url, cfg.TokenFile))
}

// AnnounceGateway writes the file for commands that name this standalone gateway with
// --director.
func AnnounceGateway(cfg config.Config, url string) error {
	return WriteJSON(perURLFile(url), Self(cfg, url, cfg.TokenFile))
}

// Self describes this process, which serves at url, to other programs.
func Self(cfg config.Config, url, tokenFile string) api.DirectorFile {
	return api.DirectorFile{URL: url, PID: os.Getpid(), Data: cfg.Data, TokenFile: tokenFile, StartedAt: time.Now().UTC().Truncate(time.Second)}
}

// healthy reports whether a director answers at url.
func healthy(url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Withdraw removes the files that Announce wrote, unless another director has
// replaced them.
func Withdraw(url string) {
	for _, path := range []string{perURLFile(url), directorFile()} {
		var f api.DirectorFile
		if ReadJSON(path, &f) == nil && f.PID == os.Getpid() && f.URL == url {
			_ = os.Remove(path) // on an error, readers find no server at the address
		}
	}
}

// DefaultDirector returns the director of this user that the command line uses by default.
func DefaultDirector() (f api.DirectorFile, ok bool) { return f, ReadJSON(directorFile(), &f) == nil }

// WriteJSON replaces a file atomically, mode 0600.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'))
}

// ReadJSON reads a file that WriteJSON wrote.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
