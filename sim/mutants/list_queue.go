package mutants

// Faults of work-queue in ordering, offers and recovery.
var queueMutants = []Mutant{
	{
		Name: "first-of-session-only", Fault: "work-queue 1",
		Text: "only the first task of a session is considered, so a delayed one blocks the others",
		File: "internal/store/verbs/turns.go",
		Edits: []Edit{{
			"for i := range k.pending.items {\n\t\tswitch r := k.pending.items[i].row; {",
			"for i := range k.pending.items[:min(1, len(k.pending.items))] {\n\t\tswitch r := k.pending.items[i].row; {",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/session", "TestConformance/rules/wake"},
	},
	{
		Name: "paused-line-ends-the-look", Fault: "work-queue 1",
		Text: "the search for work ends at the first queue that is paused",
		File: "internal/store/verbs/claim.go",
		Edits: []Edit{{
			"if x.paused(q, now) {\n\t\t\tcontinue",
			"if x.paused(q, now) {\n\t\t\treturn nil",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/claim"},
	},
	{
		Name: "vanished-holder-keeps-its-turns", Fault: "work-queue 1",
		Text: "the turns of a session wait forever for an agent that is gone",
		File: "internal/engine/stranded.go",
		Edits: []Edit{{
			"t.Parking != nil && t.Parking.Began:\n\t\t\tev = ",
			"t.Parking != nil && t.Parking.Began:\n\t\t\tcontinue\n\t\t\tev = ",
		}},
		Package: "internal/engine", Tests: []string{"TestResolveStranded"},
	},
	{
		Name: "no-reservation", Fault: "work-queue 2",
		Text: "a claim ignores the slot rows: an agent gets a second task while the first runs",
		File: "internal/store/verbs/claim.go",
		Edits: []Edit{
			{"if u.count[sort] >= slots || (c.Fleet", "if (c.Fleet"},
			{"return u.free(sort, first+slots)", "return first, slots > 0"},
		},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/slots", "TestConformance/rules/claim"},
	},
	{
		Name: "back-of-queue-undone-by-a-reload", Fault: "work-queue 2",
		Text: "the new position of a task that a busy agent refused is not stored: it is first again",
		File: "internal/store/verbs/apply.go",
		Edits: []Edit{{
			"case signalbox.OrderBack:\n\t\tx.enqueue(t, c.Entry.At)",
			"case signalbox.OrderBack:\n\t\tif t.Place == 0 {\n\t\t\tx.enqueue(t, c.Entry.At)\n\t\t}",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestDurable", "TestContract/rules/order"},
	},
	{
		Name: "offers-to-the-busy", Fault: "work-queue 2",
		Text: "an agent that is busy with work of its own is offered a task at each status",
		File: "internal/execution/push/availability.go",
		Edits: []Edit{{
			"case len(foreign) > 0 && (insists || full):",
			"case len(foreign) > 1 && (insists || full):",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault02BusyAgentIsNotOfferedUntilIdle"},
	},
	{
		Name: "lost-task-polled-for-ever", Fault: "work-queue 3",
		Text: "an agent that no longer knows a task is polled for it forever",
		File: "internal/execution/push/follow.go",
		Edits: []Edit{{
			"case statusOf(err) == http.StatusNotFound && !r.mayBeElsewhere(ctx, err):",
			"case statusOf(err) == http.StatusNotFound && r.silence() < 0:",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault03LostTaskIsNotPolledForEver"},
	},
	{
		Name: "cancel-forgotten-at-the-reply", Fault: "work-queue 4",
		Text: "a cancel that arrives during the offer is forgotten when the agent accepts",
		File: "next.go",
		Edits: []Edit{{
			"if t.CancelRequested {\n\t\tt.State = Cancelling\n\t}\n",
			"",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "cancelled-task-runs-again", Fault: "work-queue 4",
		Text: "a cancelled task that a busy agent refused goes back to the queue",
		File: "next.go",
		Edits: []Edit{{
			"if c.Task.CancelRequested {\n\t\treturn endCancelled(c, ev)\n\t}\n\tc.Task.LastError = cmp.Or(ev.Message, \"agent busy\")",
			"c.Task.LastError = cmp.Or(ev.Message, \"agent busy\")",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
	{
		Name: "cancel-not-told-after-the-reply", Fault: "work-queue 4",
		Text: "an agent that accepts a task that was cancelled meanwhile is not told",
		File: "internal/execution/push/run.go",
		Edits: []Edit{{
			"if r.row().State == signalbox.Cancelling {\n\t\tr.d.sendCancel(r)\n\t}\n",
			"",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault04CancelWhileDispatchingStopsAgent"},
	},
	{
		Name: "recovery-asks-nobody", Fault: "work-queue 5",
		Text: "a restart requeues dispatched tasks without asking their agents",
		File: "internal/execution/push/adopt.go",
		Edits: []Edit{{
			"r.ask(ctx, nil)\n\t\treturn",
			"r.neverSeen(ctx, nil)\n\t\treturn",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault05RecoveryAsksAgentBeforeRequeue"},
	},
	{
		Name: "bad-request-tried-again", Fault: "work-queue 6",
		Text: "a task that its agent refuses with 4xx is offered again",
		File: "internal/execution/refusal.go",
		Edits: []Edit{{
			"return e.Reject(ctx, t, message)",
			"return e.Refuse(ctx, t, message)",
		}},
		Package: "internal/execution/push", Tests: []string{"TestDispatchFailureAgentReturns4xxFailsTask"},
	},
	{
		Name: "busy-costs-an-attempt", Fault: "work-queue 6",
		Text: "a busy agent costs the task an attempt",
		File: "next.go",
		Edits: []Edit{{
			"c.Task.LastError = cmp.Or(ev.Message, \"agent busy\")\n",
			"c.Task.LastError = cmp.Or(ev.Message, \"agent busy\")\n\tc.Task.Attempts++\n",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
}
