package agentd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// What Config.Tools may say of the director's tools.
const (
	toolsAuto     = "auto"     // where it has any behind its gateway
	toolsDirector = "director" // always: the queue is there as tools
	toolsNone     = "none"     // never
)

// gatewayWait is how long a run waits to be told which tools its director has.
const gatewayWait = 5 * time.Second

// gateway is what the run is told of its director's tools, or nil.
func (r *run) gateway() *runner.Gateway {
	d := r.d
	if !runner.SpeaksMCP(d.cfg.Kind) || d.cfg.Director == "" || d.cfg.Tools == toolsNone {
		return nil
	}
	servers, any, err := d.directorTools(r.task.RunToken)
	if err != nil {
		r.remark("the director's tools could not be listed, and this run goes without: %v", err)
		return nil
	}
	if !any && d.cfg.Tools != toolsDirector {
		return nil
	}
	return &runner.Gateway{Servers: servers, Dir: d.disk.runDir(r.record().TaskID)}
}

// directorTools lists the MCP servers behind the director's gateway that a
// run's token may use, and reports whether there is any tool there besides the director's own.
func (d *Daemon) directorTools(token string) (servers []string, any bool, err error) {
	c, err := client.New(d.cfg.Director, client.Options{Token: token})
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), gatewayWait)
	defer cancel()
	tools, err := c.ListTools(ctx)
	if client.Code(err) == string(signalbox.CodeNotFound) {
		return nil, false, nil
	}
	for _, s := range tools.Servers {
		any = any || s.Kind != "internal"
		if s.Kind == "mcp" {
			servers = append(servers, s.Name)
		}
	}
	slices.Sort(servers)
	return servers, any, err
}

// remark writes a line of our own to the run's log.
func (r *run) remark(format string, args ...any) {
	fmt.Fprintf(r.log, "[signalbox] "+format+"\n", args...)
}
