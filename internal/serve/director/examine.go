package director

import (
	"context"
	"net"
	"os"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/doctor"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/serve"
)

// Examine runs doctor's checks when no director answers: of the address at which it would
// listen, the data folder and the store. It writes only a copy of the database, to another
// folder.
func Examine(ctx context.Context, p serve.Program, cfg config.Config) []api.Check {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out := examineAddr(ctx, cfg)
	if _, err := os.Stat(cfg.Data); err == nil {
		folder := dataFolder(cfg)
		folder.Untouched = true
		out = append(out, doctor.Data(folder)(ctx, true)...)
	}
	return append(out, p.ExamineStore(ctx, cfg)...)
}

// examineAddr checks whether a director could listen at its address.
func examineAddr(ctx context.Context, cfg config.Config) []api.Check {
	check := api.Check{Area: "ports", State: "ok", Text: cfg.Addr + " is free for a director"}
	if _, port, err := net.SplitHostPort(cfg.Addr); err != nil || port == "0" {
		return nil
	}
	l, err := serve.Listen(ctx, cfg.Addr)
	if err != nil {
		check.State, check.Text, check.Cure = "fail", "a director cannot start: "+err.Error(), "stop what holds it, or give --addr"
	} else {
		l.Close()
	}
	return []api.Check{check}
}

// dataFolder describes the data folder for doctor.
func dataFolder(cfg config.Config) doctor.Folder {
	return doctor.Folder{Dir: cfg.Data, KeyFile: seal.KeyFile, KeyEnv: seal.EnvKey, Database: strings.HasPrefix(cfg.Store, "sqlite:")}
}
