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

// The variables with which commands and agents are told the token of a director.
const (
	TokenEnv     = "SIGNALBOX_TOKEN"
	TokenFileEnv = "SIGNALBOX_TOKEN_FILE"
)

// StaticToken refuses, as the static token of a director, one that a director made:
// the static token has every right, and a made one may have few. One from the
// environment is for clients of a director and is ignored; anywhere else it is a
// mistake.
func StaticToken(cfg *config.Config, log *slog.Logger) error {
	if !slices.ContainsFunc([]string{"sbxa_", "sbxt_", seal.RunTokenPrefix}, func(p string) bool { return strings.HasPrefix(cfg.Token, p) }) {
		return nil
	}
	from := cfg.Origin("token")
	if from != TokenEnv && from != TokenFileEnv {
		return errors.New("token: it is one that a director made (signalbox tokens create), whose rights the store knows; the static token of a director is one of your own, such as openssl rand -hex 32 prints: leave it out, and the director makes one")
	}
	log.Info(from + " holds a token that a director made: it is for those who call one, and not the static token of this director")
	cfg.Token, cfg.TokenFile = "", ""
	return nil
}

// OwnerToken gives a director the token of the owner of a home folder, and makes it at
// the first start: the director is closed to everyone else, and the owner's command
// line needs no flag. A given token takes precedence; an open director has none.
func OwnerToken(cfg *config.Config, home string) error {
	switch {
	case cfg.Open && cfg.Token != "":
		return fmt.Errorf("open: the director is to ask nobody for a token, and one is given (%s): leave one of them out", cfg.Origin("token"))
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
