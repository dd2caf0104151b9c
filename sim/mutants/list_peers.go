package mutants

// Where peers fail.
var peerMutants = []Mutant{
	{
		Name: "old-worker-ends-the-new-run", Fault: "peer River attempt",
		Text: "the word of an execution that lost its slot counts for the one that has it now",
		File: "next.go",
		Edits: []Edit{{
			"if step.fenced && ev.Fence != t.Fence {",
			"if step.fenced && ev.Fence > t.Fence {",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "late-word-taken-for-news", Fault: "peer River attempt",
		Text: "a claim that another director tells of late makes an execution that has begun one that its agent never accepted",
		File: "internal/execution/pull/wake.go",
		Edits: []Edit{{
			"if earlier(t.State, r.Task.State) {",
			"if earlier(t.State, t.State) {",
		}},
		Package: "internal/execution/pull", Tests: []string{"TestLateReportOfClaim"},
	},
	{
		Name: "rescue-after-an-hour", Fault: "peer River rescue",
		Text: "an agent may be silent for six times its slot lease",
		File: "internal/execution/push/follow.go",
		Edits: []Edit{{
			"case r.silence() >= r.d.Engine.Options().ExecutionTTL:\n\t\t\tr.lose(",
			"case r.silence() >= 6*r.d.Engine.Options().ExecutionTTL:\n\t\t\tr.lose(",
		}},
		Package: "internal/execution/push", Tests: []string{"TestSilentFencingAgentIsOfferedAHigherFenceWhenBack", "TestIncidentReclaimDeferredWhileAgentUnreachable"},
	},
	{
		Name: "waits-for-the-tick", Fault: "peer River cooldown",
		Text: "a task that becomes ready wakes nobody: the next look finds it",
		File: "internal/execution/claim.go",
		Edits: []Edit{{
			"(t.Ready || a.Partial) {\n\t\tb.Kick(t.Queue)",
			"(t.Ready || a.Partial) {\n\t\tb.Maintenance.RunNow()",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault02NoDoubleDispatchFromStaleIdleCache", "TestNoTaskWaitsBesideFreeSlot"},
	},
	{
		Name: "due-turn-unnoticed", Fault: "peer River cooldown",
		Text: "a turn that the submit of another one makes ready waits for the next look",
		File: "internal/engine/watch.go",
		Edits: []Edit{{
			"(a.Kind != signalbox.EventSubmit || !t.Ready)",
			"a.Kind != signalbox.EventSubmit",
		}},
		Package: "internal/execution/push", Tests: []string{"TestSubmitReadiesAnotherSessionTurn"},
	},
	{
		Name: "late-offer-runs", Fault: "peer fence unsent",
		Text: "a task is sent back at its agent's word that it never saw it, and an offer that is still on its way runs all the same",
		File: "internal/execution/push/ask.go",
		Edits: []Edit{{
			"unseen > 1 && r.believed(ctx, unseen)",
			"unseen > 1",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentOfferArrivesAfterRequeue"},
	},
	{
		Name: "promise-forgotten", Fault: "peer fence unsent",
		Text: "a restarted agent takes the offer that it promised to refuse",
		File: "internal/agentd/recover.go",
		Edits: []Edit{{
			"range past.voided {",
			"range past.voided[:0] {",
		}},
		Package: "internal/agentd", Tests: []string{"TestVoid(ClaimIsRefused|OutlivesAKill)"},
	},
	{
		Name: "end-without-a-token", Fault: "peer Asynq token",
		Text: "the end of a run names no fence",
		File: "next.go",
		Edits: []Edit{{
			"EventFinish: {fenced: true, from",
			"EventFinish: {from",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "retry-without-a-token", Fault: "peer Asynq token",
		Text: "what sends a task back names no fence",
		File: "next.go",
		Edits: []Edit{{
			"EventRefuse: {fenced: true, from",
			"EventRefuse: {from",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "slots-scanned", Fault: "peer Asynq scan",
		Text: "to give one slot back all are read",
		File: "internal/store/sqlite/statements.go",
		Edits: []Edit{{
			"`DELETE FROM slots WHERE agent = ?1 AND slot = ?2`",
			"`DELETE FROM slots WHERE agent || '' = ?1 AND slot = ?2`",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestEveryStatementUsesAnIndex"},
	},
	{
		Name: "claim-without-a-slot-row", Fault: "peer Hatchet order",
		Text: "a task leaves its line and nothing says who runs it",
		File: "internal/store/verbs/claim.go",
		Edits: []Edit{{
			"x.setSlot(u, slot, &signalbox.Slot{Agent: c.Agent, Slot: slot, TaskID: t.ID, Fence: fence, Expires: c.Expires})\n",
			"",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestContract/rules/claim", "TestContract/rules/slots"},
	},
	{
		Name: "failed-keeps-its-slot", Fault: "peer Hatchet leak",
		Text: "a run that did not end well keeps its slot",
		File: "ending.go",
		Edits: []Edit{{
			"if held {\n",
			"if held && reason == ReasonCompleted {\n",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "double-release-admits", Fault: "peer Solid Queue counter",
		Text: "a permit that is given back twice frees the slot of whoever has it by then",
		File: "toolqueue/queue.go",
		Edits: []Edit{{
			"if p.slot.state.CompareAndSwap(p.state, p.state-held+nextUse) && p.slot.queue.mustLock() {",
			"if p.slot.state.Add(nextUse-held); p.slot.queue.mustLock() {",
		}},
		Package: "toolqueue", Tests: []string{"TestReleaseCountsOnce"},
	},
	{
		Name: "fence-is-the-attempt", Fault: "peer attempt number",
		Text: "the fence counts the attempts of the task, which is the same number for many",
		File: "internal/store/verbs/claim.go",
		Edits: []Edit{{
			"store.NextFence(x.Fence, c.FenceAbove)",
			"store.NextFence(int64(r.task.Claims), c.FenceAbove)",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/fence"},
	},
	{
		Name: "agent-takes-any-fence", Fault: "peer fence unsent",
		Text: "an agent takes an offer with a fence below one that it has seen",
		File: "internal/agentd/admit.go",
		Edits: []Edit{{
			"if r.rec.Fence < top.Fence || (",
			"if r.rec.Fence < 0 && (",
		}},
		Package: "internal/agentd", Tests: []string{"TestLowerFenceIsStale"},
	},
	{
		Name: "session-lease-for-one-call", Fault: "peer gateway session",
		Text: "a session gives its slot away after each call",
		File: "toolqueue/lease.go",
		Edits: []Edit{{
			"if s.ending || !s.used || now >= held {",
			"if s.ending || !s.used || now >= held || !s.busy {",
		}},
		Package: "toolqueue", Tests: []string{"TestLeaseKeepsTheSlotFromCallToCall", "TestLeaseSerializesCallsOfSession"},
	},
	{
		Name: "waiting-caller-hears-nothing", Fault: "peer gateway position",
		Text: "a caller that waits is not told its place in line",
		File: "internal/gateway/call.go",
		Edits: []Edit{{
			"\t\tprogress.follow(w, e.tool.Queue)\n",
			"",
		}},
		Package: "internal/gateway", Tests: []string{"TestProgressReportsQueuePosition"}, Hangs: true,
	},
	{
		Name: "call-never-becomes-a-task", Fault: "peer gateway overflow",
		Text: "a call goes on waiting beyond its grace",
		File: "internal/execution/local/promote.go",
		Edits: []Edit{{
			"timer = time.AfterFunc(grace, func() {",
			"timer = time.AfterFunc(1_000_000*grace, func() {",
		}},
		Package: "internal/execution/local", Tests: []string{"TestCallOrPromoteKeepsPosition"}, Hangs: true,
	},
	{
		Name: "one-too-many-in-a-shared-queue", Fault: "peer gateway shared",
		Text: "a queue that several processes share lets one more in than it has slots",
		File: "internal/store/ticket.go",
		Edits: []Edit{{
			"return t.running[x.Key] < t.step.Concurrent",
			"return t.running[x.Key] <= t.step.Concurrent",
		}},
		Package: "internal/store", Tests: []string{"TestTicketSteps", "TestTicketStepInvariants"},
	},
}
