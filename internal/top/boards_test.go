package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

func before(d time.Duration) *time.Time { t := noon.Add(-d); return &t }

func id(end string) string { return "queue-" + strings.Repeat("0", 22) + end }

// task returns a task that was submitted age ago.
func task(end, state, prompt string, age time.Duration) api.LiveTask {
	return api.LiveTask{
		QueueID: id(end), State: state, PromptPreview: prompt, CreatedAt: *before(age), Source: "web", Mode: "queue", Queue: "work", By: "ana",
	}
}

func runs(t api.LiveTask, agent string, since time.Duration) api.LiveTask {
	t.Agent, t.StartedAt, t.Attempts = agent, before(since), 0
	return t
}

func waits(t api.LiveTask, queue string, position int) api.LiveTask {
	t.Queue, t.Position = queue, position
	return t
}

func agent(name, face string, current, line []api.LiveTask) api.LiveAgent {
	a := api.LiveAgent{Face: face, Current: current, Line: line}
	a.Name, a.Kind, a.State, a.Slots, a.InUse, a.Waiting = name, "claude", "working", 1, len(current), len(line)
	return a
}

// busyBoard is the board from the design of the page Now.
func busyBoard() api.Live {
	search := runs(task("t418", "working", "Summarise the incident channel and open tickets for what is missing", 3*time.Minute), "researcher", 134*time.Second)
	search.Call = &api.LiveCall{Tool: "web_search", Capacity: "web_search", Since: *before(8 * time.Second), InUse: 3, Concurrent: 4}
	billing := runs(task("t402", "working", "Upgrade the billing service to Go 1.26 and run its tests", 12*time.Minute), "coder", 662*time.Second)
	billing.Source, billing.SourceJob, billing.By = "scheduler", "nightly-upgrade", ""
	billing.Call = &api.LiveCall{Tool: "github__search", Capacity: "github", Waiting: true, Since: *before(48 * time.Second), InUse: 4, Concurrent: 4}
	notes := runs(task("t377", "working", "Draft the release notes for 0.9 from merged changes", 50*time.Minute), "writer", 47*time.Minute)
	stuck := agent("writer", "stuck", []api.LiveTask{notes}, []api.LiveTask{waits(task("t420", "pending", "Write the announcement", 22*time.Minute), "agent:writer", 1)})
	stuck.FaceText = "no heartbeat for 6m 12s"
	idle := agent("triage", "idle", nil, nil)
	idle.IdleAt = before(200 * time.Second)
	paused := agent("deployer", "paused", nil, []api.LiveTask{waits(task("t399", "pending", "Deploy shop to staging", 31*time.Minute), "agent:deployer", 1)})
	paused.Pause = &api.Pause{Queue: "agent:deployer", By: "ana", Reason: "freeze", Since: *before(time.Hour)}
	coder := agent("coder", "waiting for capacity", []api.LiveTask{billing}, []api.LiveTask{
		waits(task("t409", "pending", "Fix the flaky login test", 570*time.Second), "agent:coder", 1),
		waits(task("t411", "pending", "Rename the config keys", 484*time.Second), "agent:coder", 2),
	})
	coder.Waiting = 8
	return api.Live{
		Revision: 1,
		Totals:   &api.Totals{Pending: 11, Running: 3, Slots: 5, MaxSize: 50, OldestAgeSeconds: 1860, Done24h: 214, Failed24h: 6, AgentsUp: 5, Agents: 5},
		Health: &api.Verdict{Text: "2 need attention: writer has sent no heartbeat for 6m 12s · github is full and 3 tasks wait (oldest 48s)", Attention: []api.Attention{
			{Kind: "agent_silent", Level: "error", Subject: "writer", Cure: "start it again, or give up what it holds: signalbox release writer"}, {Kind: "capacity_full", Level: "warning", Subject: "github"},
		}},
		Agents: []api.LiveAgent{
			agent("researcher", "running", []api.LiveTask{search}, []api.LiveTask{
				waits(task("t421", "pending", "Compare the vendors", 110*time.Second), "agent:researcher", 1),
				waits(task("t425", "pending", "Find the outage's first report", 40*time.Second), "agent:researcher", 2),
				waits(task("t427", "pending", "Read the postmortem", 12*time.Second), "agent:researcher", 3),
			}),
			coder, stuck, idle, paused,
		},
		Queues: []api.LiveQueue{{Name: "work", Waiting: 2, Line: []api.LiveTask{
			waits(task("t430", "pending", "Translate the manual", 5*time.Second), "work", 1), waits(task("t431", "pending", "Sort the inbox", 2*time.Second), "work", 2),
		}}},
		Capacity: []api.ToolQueue{
			{Name: "github", Concurrent: 4, InUse: 4, Depth: 3, Holders: []api.ToolHolder{
				{Agent: "triage", Tool: "github__search", Since: before(90 * time.Second)}, {Agent: "ci-bot", Tool: "github__merge", Since: before(30 * time.Second), Director: "d2"},
				{Agent: "ci-bot", Tool: "github__merge", Since: before(20 * time.Second)}, {Agent: "researcher", Tool: "github__search", Since: before(9 * time.Second), Leased: true, Idle: true},
			}, Waiters: []api.ToolWaiter{{Position: 1, Agent: "coder", Tool: "github__search", Since: *before(48 * time.Second)}, {Position: 2, Agent: "writer", Tool: "github__search", Since: *before(10 * time.Second)}}, WaitersNotShown: 1},
			{Name: "web_search", Concurrent: 4, InUse: 3, Holders: []api.ToolHolder{{Agent: "researcher"}, {Agent: "researcher"}, {Agent: "triage"}}},
			{Name: "anthropic-api", Concurrent: 100, InUse: 33},
			{Name: "browser", Concurrent: 2},
		},
		Tasks: []api.LiveTask{search, billing, notes},
	}
}

// fullBoard has more of everything than fits on a screen.
func fullBoard() api.Live {
	l := busyBoard()
	l.Totals.Pending, l.Totals.Running, l.Totals.Slots = 50, 30, 30
	for i := range 30 {
		name := fmt.Sprintf("agent-with-a-long-name-%02d", i)
		l.Agents = append(l.Agents, agent(name, "running", []api.LiveTask{runs(task(fmt.Sprintf("r%03d", i), "working", "Run number "+fmt.Sprint(i), time.Minute), name, time.Minute)}, nil))
	}
	return l
}

// hostileBoard is full of texts that try to control the terminal.
func hostileBoard() api.Live {
	const evil = "<script>alert(1)</script> \x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c 日本語のタスク 👩‍👩‍👧 \u0085\u2028end"
	t := runs(task("evil", "working", evil, time.Minute), "mal\x1b[31mory", time.Minute)
	t.By = "eve\x1b[1A\u202e"
	t.Call = &api.LiveCall{Tool: evil, Capacity: "q\x1b[2Jq", Waiting: true, Since: *before(time.Second), InUse: 1, Concurrent: 1}
	a := agent("mal\x1b[31mory", "stuck", []api.LiveTask{t}, []api.LiveTask{waits(task("wide", "pending", strings.Repeat("漢字", 60), time.Second), "agent:mallory", 1)})
	a.FaceText = "said \x1b[5mthis\x1b[0m\nand that"
	return api.Live{
		Revision: 1, Totals: &api.Totals{Pending: 1, Running: 1, Slots: 1, MaxSize: 50},
		Health:   &api.Verdict{Text: "mallory\x1b[8m is stuck\x9b2J", Attention: []api.Attention{{Kind: "stuck", Level: "error", Cure: evil}}},
		Agents:   []api.LiveAgent{a},
		Queues:   []api.LiveQueue{{Name: "pool:e\x1b[1Jvil", Waiting: 1, Pause: &api.Pause{Queue: "pool:evil", Reason: evil, By: evil}}},
		Capacity: []api.ToolQueue{{Name: "q\x1b[2Jq", Concurrent: 1, InUse: 1, Depth: 1, Holders: []api.ToolHolder{{Agent: evil, Tool: evil}}, Waiters: []api.ToolWaiter{{Position: 1, Agent: evil, Tool: evil, Since: noon}}}},
		Tasks:    []api.LiveTask{t},
	}
}

// limitedBoard has an account at its limit, one that is signed out, and tasks that wait for
// them.
func limitedBoard() api.Live {
	until := noon.Add(40 * time.Minute)
	gate := &api.WaitingFor{Kind: "account", Name: "claude-max", Text: "account claude-max is closed until 2026-03-01T12:40:00Z (five_hour)", Until: &until}
	parked, behind := waits(task("t510", "parked", "Port the parser to the new grammar", 20*time.Minute), "agent:coder", 1), waits(task("t511", "pending", "Write its tests", 12*time.Minute), "agent:coder", 2)
	parked.WaitingFor, behind.WaitingFor = gate, gate
	coder := agent("coder", "waiting for account", nil, []api.LiveTask{parked, behind})
	coder.FaceText = gate.Text
	return api.Live{
		Revision: 1, Totals: &api.Totals{Pending: 2, Slots: 1, MaxSize: 50, OldestAgeSeconds: 1200, AgentsUp: 1, Agents: 1},
		Health: &api.Verdict{Text: "Account claude-max is closed until 2026-03-01T12:40:00Z (five_hour): 2 tasks wait.", Attention: []api.Attention{
			{Kind: "account_closed", Level: "warning", Subject: "Account claude-max", Cure: "signalbox accounts open claude-max"},
		}},
		Agents: []api.LiveAgent{coder},
		Accounts: []api.Account{
			{
				Name: "claude-max", Kind: "claude", Login: "ann@example.com", State: "closed", Reason: "You've hit your limit", Window: "five_hour", Until: &until, Agents: []string{"coder"}, Parked: 1, Waiting: 1,
				Windows: []api.AccountWindow{{Name: "five_hour", UsedPercent: 100, ResetsAt: &until}, {Name: "seven_day", UsedPercent: 31}},
			},
			{Name: "codex-key", Kind: "codex", State: "signed_out"},
			{Name: "quiet", Kind: "llm", State: "open"},
		},
	}
}
