package mutants

// What users of queues ask for most because it is missing or broken elsewhere.
var askedMutants = []Mutant{
	{
		Name: "limits-never-fire", Fault: "asked stuck turn",
		Text: "a run that exceeds its timeout or stalls holds its slot forever",
		File: "internal/execution/push/maintenance.go",
		Edits: []Edit{{
			"d.enforceLimits()\n",
			"",
		}},
		Package: "internal/execution/push", Tests: []string{"TestRunBeyondTimeoutIsStopped", "TestStallLimit"},
	},
	{
		Name: "waiting-lost-at-the-start", Fault: "asked recovery",
		Text: "tasks that wait when the store is opened are never claimed",
		File: "internal/store/sqlite/fill.go",
		Edits: []Edit{{
			"if err := c.each(&q, func(t *signalbox.Task) { n.count(t, 1) }); err != nil {",
			"if err := c.each(&q, func(*signalbox.Task) {}); err != nil {",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestDurable"},
	},
	{
		Name: "slot-kept-by-what-waits", Fault: "asked leaks",
		Text: "a requeued task keeps its slot",
		File: "next.go",
		Edits: []Edit{{
			"t.TaskID, t.StartedAt = \"\", time.Time{}\n\tc.Slot = SlotFree\n",
			"t.TaskID, t.StartedAt = \"\", time.Time{}\n",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "two-turns-at-once", Fault: "asked per key",
		Text: "two turns of a session may run at once",
		File: "internal/store/verbs/turns.go",
		Edits: []Edit{{
			"if len(k.inFlight.items) > 0 {\n\t\treturn nil\n\t}\n\tfor i",
			"for i",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/session"},
	},
	{
		Name: "last-in-first-out", Fault: "asked order",
		Text: "of tasks with the same key the newest is taken first",
		File: "internal/store/verbs/lines.go",
		Edits: []Edit{{
			"cmp.Compare(a.tie, b.tie)",
			"cmp.Compare(b.tie, a.tie)",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/order"},
	},
	{
		Name: "orphans-left-alone", Fault: "asked orphans",
		Text: "tasks in flight that no director follows are not looked for",
		File: "internal/execution/push/maintenance.go",
		Edits: []Edit{{
			"c.suspects = d.reconcile(ctx, c.suspects)\n",
			"",
		}},
		Package: "internal/execution/push", Tests: []string{"TestUnfollowedTaskIsAdopted"},
	},
	{
		Name: "half-of-the-slots", Fault: "asked throughput",
		Text: "an agent gets half as many tasks as it has slots",
		File: "internal/execution/push/lane.go",
		Edits: []Edit{{
			"return l.Row.Slots - l.inUse(false) + l.ending",
			"return (l.Row.Slots+1)/2 - l.inUse(false) + l.ending",
		}},
		Package: "internal/execution/push", Tests: []string{"TestSlotsRunSideBySide"},
	},
	{
		Name: "ceiling-of-nobody", Fault: "asked global",
		Text: "the store does not get the limit over all agents",
		File: "internal/engine/claim.go",
		Edits: []Edit{{
			"r.Fleet, r.Account, r.Except.Sources = e.opts.Fleet,",
			"r.Fleet, r.Account, r.Except.Sources = 0*e.opts.Fleet,",
		}},
		Package: "internal/engine", Tests: []string{"TestFleetCeiling"},
	},
	{
		Name: "busy-is-an-instant-no", Fault: "asked bounded wait",
		Text: "a chat that would have to wait is refused",
		File: "internal/engine/room.go",
		Edits: []Edit{{
			"Must: n.Overflow == signalbox.OverflowReject,",
			"Must: n.Overflow != signalbox.OverflowPersist,",
		}},
		Package: "internal/engine", Tests: []string{"TestOverflowPolicies", "TestChatReceiptTellsItsPosition"},
	},
	{
		Name: "wait-never-ends", Fault: "asked bounded wait",
		Text: "a task's maximum wait is not enforced",
		File: "internal/engine/submit.go",
		Edits: []Edit{{
			"t.WaitUntil = now.Add(n.WaitTimeout)",
			"t.WaitUntil = now.Add(1000 * n.WaitTimeout)",
		}},
		Package: "internal/engine", Tests: []string{"TestOverdueTasksEnd"},
	},
	{
		Name: "backlog-without-cap", Fault: "asked caps",
		Text: "the limit on waiting tasks is one too high",
		File: "internal/store/verbs/submit.go",
		Edits: []Edit{{
			"if v.sub.Cap > 0 && n >= v.sub.Cap {",
			"if v.sub.Cap > 0 && n > v.sub.Cap {",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/limit"},
	},
	{
		Name: "first-has-no-position", Fault: "asked position",
		Text: "positions are one too low, and the first task has none",
		File: "internal/store/verbs/read.go",
		Edits: []Edit{{
			"store.Position{N: p.n + 1, Approximate",
			"store.Position{N: p.n, Approximate",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/position"},
	},
	{
		Name: "eta-without-free-slots", Fault: "asked position",
		Text: "an estimate ignores free slots",
		File: "internal/engine/eta.go",
		Edits: []Edit{{
			"if ahead := pos.N - stats.free; ahead > 0 {",
			"if ahead := pos.N; ahead > 0 {",
		}},
		Package: "internal/engine", Tests: []string{"TestETA"},
	},
	{
		Name: "cancel-not-told", Fault: "asked cancel",
		Text: "the agent of a cancelled task is not told",
		File: "internal/execution/push/wake.go",
		Edits: []Edit{{
			"if t.State == signalbox.Cancelling {\n\t\t\td.sendCancelFor(t)\n\t\t}",
			"d.Mu.Lock()\n\t\td.Mu.Unlock()",
		}},
		Package: "internal/execution/push", Tests: []string{"TestCancelWorking"},
	},
	{
		Name: "one-registers-all-are-asked", Fault: "asked light",
		Text: "each registration asks all agents for their status",
		File: "internal/execution/push/probe.go",
		Edits: []Edit{{
			"if l := d.Lanes[name]; l != nil {\n\t\tl.stale = true",
			"for _, l := range d.Order {\n\t\tl.stale = true",
		}},
		Package: "internal/execution/push", Tests: []string{"TestRegisteringAgentsDoNotLoadOthers"},
	},
	{
		Name: "commit-without-sync", Fault: "asked durable",
		Text: "a commit is acknowledged before it is synced",
		File: "internal/store/sqlite/open.go",
		Edits: []Edit{
			{"\"PRAGMA synchronous = FULL\"", "\"PRAGMA synchronous = NORMAL\""},
			{"\"PRAGMA synchronous\": \"2\"", "\"PRAGMA synchronous\": \"1\""},
		},
		Package: "internal/store/sqlite", Tests: []string{"TestSyncsPerVerb", "TestFailedSyncIsFatalAndAcknowledgesNothing"},
	},
}
