package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/seal"
)

// The environment variables for the token of a director, for commands and agents.
const (
	TokenEnv     = "SIGNALBOX_TOKEN"
	TokenFileEnv = "SIGNALBOX_TOKEN_FILE"
)

// StaticToken refuses a token that a director made as the static token of a director: the
// static token has every right, but a made token may have few. In the environment such a
// token is for clients of a director, and StaticToken ignores it; anywhere else it is a
// mistake and an error.
func StaticToken(cfg *config.Config, log *slog.Logger) error {
	if !slices.ContainsFunc([]string{"sbxa_", "sbxt_", seal.RunTokenPrefix}, func(p string) bool { return strings.HasPrefix(cfg.Token, p) }) {
		return nil
	}
	from := cfg.Origin("token")
	if from != TokenEnv && from != TokenFileEnv {
		return errors.New("token: a token that a director made (signalbox tokens create) cannot be the static token of a director: leave it out, and the director makes one, or choose one, for example with openssl rand -hex 32")
	}
	log.Info(from + " has a token that a director made: it is for clients, and not used as the static token of this director")
	cfg.Token, cfg.TokenFile = "", ""
	return nil
}

// OwnerToken sets the token of a director to that in the owner's home folder, which it
// creates at the first start. So the director is closed to everyone else, and the owner's
// command line needs no flag. A configured token takes precedence; an open director has
// none.
func OwnerToken(cfg *config.Config, home string) error {
	switch {
	case cfg.Open && cfg.Token != "":
		return fmt.Errorf("open: the director requires no token, but one is given (%s): leave one of them out", cfg.Origin("token"))
	case cfg.Open || cfg.Token != "":
		return nil
	case home == "":
		return errors.New("there is no folder for the director's token: neither HOME nor " + config.HomeEnv + " is set; give one, or a token with --token-file")
	}
	path := config.TokenFile(home)
	token, err := config.EnsureSecret(path)
	if err != nil {
		return fmt.Errorf("the director's token: %w", err)
	}
	cfg.Token, cfg.TokenFile = token, path
	return nil
}
