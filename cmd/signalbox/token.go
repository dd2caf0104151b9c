package main

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// staticToken keeps a token that a director made from becoming the static
// token of this one, which has every right: the rights of a made one may be
// few. In the environment it stands for those who call a director, and is left
// to them; elsewhere it is a mistake.
func staticToken(cfg *config.Config, log *slog.Logger) error {
	if !strings.HasPrefix(cfg.Token, "sbxa_") && !strings.HasPrefix(cfg.Token, "sbxt_") {
		return nil
	}
	if cfg.Origin("token") != tokenEnv {
		return errors.New("token: it is one that a director made (signalbox tokens create), whose rights the store knows; the static token of a director is one of your own, such as openssl rand -hex 32 prints: leave it out to use the store's")
	}
	log.Info(tokenEnv + " holds a token that a director made: it is for those who call one, and not the static token of this director")
	cfg.Token = ""
	return nil
}
