package mutants

// Where peers fail.
var peerMutants = []Mutant{
	{
		Name: "old-worker-ends-the-new-run", Fault: "peer River attempt",
		Text: "a report of an execution that lost its slot counts for the current one",
		File: "next.go",
		Edits: []Edit{{
			"if step.fenced && ev.Fence != t.Fence {",
			"if step.fenced && ev.Fence > t.Fence {",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "late-word-taken-for-news", Fault: "peer River attempt",
		Text: "a late notice of a claim turns a started execution into one that its agent never accepted",
		File: "internal/execution/pull/wake.go",
		Edits: []Edit{{
			"if earlier(t.State, r.Task.State) {",
			"if earlier(t.State, t.State) {",
		}},
		Package: "internal/execution/pull", Tests: []string{"TestLateReportOfClaim"},
	},
	{
		Name: "rescue-after-an-hour", Fault: "peer River rescue",
		Text: "an agent may be silent for six slot leases",
		File: "internal/execution/push/follow.go",
		Edits: []Edit{{
			"case r.silence() >= r.d.Engine.Options().ExecutionTTL:\n\t\t\tr.lose(",
			"case r.silence() >= 6*r.d.Engine.Options().ExecutionTTL:\n\t\t\tr.lose(",
		}},
		Package: "internal/execution/push", Tests: []string{"TestSilentFencingAgentIsOfferedAHigherFenceWhenBack", "TestIncidentReclaimDeferredWhileAgentUnreachable"},
	},
	{
		Name: "waits-for-the-tick", Fault: "peer River cooldown",
		Text: "a task that becomes ready wakes no claim: the next poll finds it",
		File: "internal/execution/claim.go",
		Edits: []Edit{{
			"(t.Ready || a.Partial) {\n\t\tb.Kick(t.Queue)",
			"(t.Ready || a.Partial) {\n\t\tb.Maintenance.RunNow()",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault02NoDoubleDispatchFromStaleIdleCache", "TestNoTaskWaitsBesideFreeSlot"},
	},
	{
		Name: "due-turn-unnoticed", Fault: "peer River cooldown",
		Text: "a turn that becomes ready by the submit of another waits for the next poll",
		File: "internal/engine/watch.go",
		Edits: []Edit{{
			"(a.Kind != signalbox.EventSubmit || !t.Ready)",
			"a.Kind != signalbox.EventSubmit",
		}},
		Package: "internal/execution/push", Tests: []string{"TestSubmitReadiesAnotherSessionTurn"},
	},
	{
		Name: "late-offer-runs", Fault: "peer fence unsent",
		Text: "a task is requeued because its agent does not know it, and a delayed offer runs it all the same",
		File: "internal/execution/push/ask.go",
		Edits: []Edit{{
			"unseen > 1 && r.believed(ctx, unseen)",
			"unseen > 1",
		}},
		Package: "internal/execution/push", Tests: []string{"TestIncidentOfferArrivesAfterRequeue"},
	},
	{
		Name: "promise-forgotten", Fault: "peer fence unsent",
		Text: "a restarted agent accepts an offer that it promised to refuse",
		File: "internal/agentd/recover.go",
		Edits: []Edit{{
			"range past.voided {",
			"range past.voided[:0] {",
		}},
		Package: "internal/agentd", Tests: []string{"TestVoid(ClaimIsRefused|OutlivesAKill)"},
	},
	{
		Name: "end-without-a-token", Fault: "peer Asynq token",
		Text: "the end of a run carries no fence",
		File: "next.go",
		Edits: []Edit{{
			"EventFinish: {fenced: true, from",
			"EventFinish: {from",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "retry-without-a-token", Fault: "peer Asynq token",
		Text: "a requeue carries no fence",
		File: "next.go",
		Edits: []Edit{{
			"EventRefuse: {fenced: true, from",
			"EventRefuse: {from",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "slots-scanned", Fault: "peer Asynq scan",
		Text: "freeing one slot reads all slots",
		File: "internal/store/sqlite/statements.go",
		Edits: []Edit{{
			"`DELETE FROM slots WHERE agent = ?1 AND slot = ?2`",
			"`DELETE FROM slots WHERE agent || '' = ?1 AND slot = ?2`",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestEveryStatementUsesAnIndex"},
	},
	{
		Name: "claim-without-a-slot-row", Fault: "peer Hatchet order",
		Text: "a claim writes no slot row",
		File: "internal/store/verbs/claim.go",
		Edits: []Edit{{
			"x.setSlot(u, slot, &signalbox.Slot{Agent: c.Agent, Slot: slot, TaskID: t.ID, Fence: fence, Expires: c.Expires})\n",
			"",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestContract/rules/claim", "TestContract/rules/slots"},
	},
	{
		Name: "failed-keeps-its-slot", Fault: "peer Hatchet leak",
		Text: "a failed run keeps its slot",
		File: "ending.go",
		Edits: []Edit{{
			"if held {\n",
			"if held && reason == ReasonCompleted {\n",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "double-release-admits", Fault: "peer Solid Queue counter",
		Text: "a permit released twice frees the slot of its next holder",
		File: "toolqueue/queue.go",
		Edits: []Edit{{
			"if p.slot.state.CompareAndSwap(p.state, p.state-held+nextUse) && p.slot.queue.mustLock() {",
			"if p.slot.state.Add(nextUse-held); p.slot.queue.mustLock() {",
		}},
		Package: "toolqueue", Tests: []string{"TestReleaseCountsOnce"},
	},
	{
		Name: "fence-is-the-attempt", Fault: "peer attempt number",
		Text: "the fence is the number of attempts, which repeats",
		File: "internal/store/verbs/claim.go",
		Edits: []Edit{{
			"store.NextFence(x.Fence, c.FenceAbove)",
			"store.NextFence(int64(r.task.Claims), c.FenceAbove)",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/fence"},
	},
	{
		Name: "agent-takes-any-fence", Fault: "peer fence unsent",
		Text: "an agent accepts an offer with a fence lower than one it has seen",
		File: "internal/agentd/admit.go",
		Edits: []Edit{{
			"if r.rec.Fence < top.Fence || (",
			"if r.rec.Fence < 0 && (",
		}},
		Package: "internal/agentd", Tests: []string{"TestLowerFenceIsStale"},
	},
	{
		Name: "session-lease-for-one-call", Fault: "peer gateway session",
		Text: "a session releases its slot after each call",
		File: "toolqueue/lease.go",
		Edits: []Edit{{
			"if s.ending || !s.used || now >= held {",
			"if s.ending || !s.used || now >= held || !s.busy {",
		}},
		Package: "toolqueue", Tests: []string{"TestLeaseKeepsTheSlotFromCallToCall", "TestLeaseSerializesCallsOfSession"},
	},
	{
		Name: "waiting-caller-hears-nothing", Fault: "peer gateway position",
		Text: "a waiting caller is not told its position",
		File: "internal/gateway/call.go",
		Edits: []Edit{{
			"\t\tprogress.follow(w, e.tool.Queue)\n",
			"",
		}},
		Package: "internal/gateway", Tests: []string{"TestProgressReportsQueuePosition"}, Hangs: true,
	},
	{
		Name: "call-never-becomes-a-task", Fault: "peer gateway overflow",
		Text: "a call keeps waiting beyond its grace period",
		File: "internal/execution/local/promote.go",
		Edits: []Edit{{
			"timer = time.AfterFunc(grace, func() {",
			"timer = time.AfterFunc(1_000_000*grace, func() {",
		}},
		Package: "internal/execution/local", Tests: []string{"TestCallOrPromoteKeepsPosition"}, Hangs: true,
	},
	{
		Name: "one-too-many-in-a-shared-queue", Fault: "peer gateway shared",
		Text: "a queue shared by several processes admits one call too many",
		File: "internal/store/ticket.go",
		Edits: []Edit{{
			"return t.running[x.Key] < t.step.Concurrent",
			"return t.running[x.Key] <= t.step.Concurrent",
		}},
		Package: "internal/store", Tests: []string{"TestTicketSteps", "TestTicketStepInvariants"},
	},
}
