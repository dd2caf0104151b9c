package main

import (
	"slices"

	"github.com/signalbox-ai/signalbox/bench/commands"
	"github.com/signalbox-ai/signalbox/bench/dashboard"
	"github.com/signalbox-ai/signalbox/bench/gateway"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/overhttp"
	"github.com/signalbox-ai/signalbox/bench/rest"
	"github.com/signalbox-ai/signalbox/bench/servers"
	"github.com/signalbox-ai/signalbox/bench/sqlite"
	"github.com/signalbox-ai/signalbox/bench/toolqueue"
	"github.com/signalbox-ai/signalbox/bench/workspaces"
)

// groups lists everything that is measured, in the order of the page.
var groups = slices.Concat(
	overhttp.Groups,
	[]measure.Group{rest.Group, sqlite.Group},
	servers.Groups,
	[]measure.Group{toolqueue.Group, gateway.Group, commands.Group, workspaces.Group, dashboard.Group},
)
