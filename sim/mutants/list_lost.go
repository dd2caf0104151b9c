package mutants

// Tasks that work-queue lost, duplicated or left open.
var lostMutants = []Mutant{
	{
		Name: "outcome-forgotten-at-once", Fault: "work-queue 7",
		Text: "ended tasks are pruned in the next round, whatever their retention",
		File: "internal/engine/maintenance.go",
		Edits: []Edit{{
			"e.Now().Add(-keep.For)",
			"e.Now().Add(keep.For-keep.For)",
		}},
		Package: "internal/engine", Tests: []string{"TestPrune"},
	},
	{
		Name: "outcome-pushed-out-by-others", Fault: "work-queue 7",
		Text: "if one caller exceeds its share, the oldest ended tasks of any caller are removed",
		File: "internal/store/prune.go",
		Edits: []Edit{{
			"whoevers <= 0 && owners[t.Owner] == 0",
			"whoevers <= 0 && len(owners) == 0",
		}},
		Package: "internal/engine", Tests: []string{"TestEndedTasksOfACallerAreBounded"},
	},
	{
		Name: "failed-commit-acknowledged", Fault: "work-queue 8",
		Text: "a caller whose commit failed is told that it succeeded",
		File: "internal/store/sqlite/commit.go",
		Edits: []Edit{{
			"return b.failed(err, onCommit)\n\t}\n\tb.totals",
			"_ = b.failed(err, onCommit)\n\t\treturn nil\n\t}\n\tb.totals",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestFullDatabaseRefusesAndStoreContinues", "TestFailedSyncIsFatalAndAcknowledgesNothing", "TestWriteErrorOnCommitIsFatal"},
	},
	{
		Name: "drafted-row-stays-as-it-was", Fault: "work-queue 8",
		Text: "a row that changes again after it was prepared for the next batch is stored without the change",
		File: "internal/store/sqlite/commit.go",
		Edits: []Edit{{
			"case before == after: // unchanged since it was drafted",
			"case d.Tasks[i].Drafted != nil:",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestDraftedRowIsWrittenInItsLastState"},
	},
	{
		Name: "failed-draft-forgotten", Fault: "work-queue 8",
		Text: "an error while rows are prepared is dropped, and the commit is acknowledged",
		File: "internal/store/sqlite/commit.go",
		Edits: []Edit{{
			"if b.draft.begun || b.draft.err != nil {\n\t\treturn b.draft.err\n",
			"if b.draft.begun || b.draft.err != nil {\n\t\treturn nil\n",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestFailedDraftFailsItsCommit"},
	},
	{
		Name: "one-value-refuses-all", Fault: "work-queue 8",
		Text: "a value that the store refuses fails every verb in its batch",
		File: "internal/store/verbs/retry.go",
		Edits: []Edit{{
			"if errors.Is(err, ErrValue) && len(w.batch.Jobs) > 1 {",
			"if errors.Is(err, ErrValue) && len(w.batch.Jobs) > 1<<20 {",
		}},
		Package: "internal/store/verbs", Tests: []string{"TestRefusedValueFailsOnlyItsVerb"},
	},
	{
		Name: "changed-row-runs", Fault: "work-queue 8",
		Text: "a task whose row was changed in the file runs as if it had been submitted that way",
		File: "internal/store/sqlite/sum.go",
		Edits: []Edit{{
			"return rest, binary.LittleEndian.Uint64(b) == k.sum(kind, seq, rest)",
			"return rest, len(rest) > 0",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestChangedRowIsQuarantinedAndNeverClaimed"},
	},
	{
		Name: "env-outlives-its-task", Fault: "work-queue 9",
		Text: "the environment of a task stays in the file after its end",
		File: "internal/store/sqlite/commit.go",
		Edits: []Edit{{
			"if before.HasEnv && after.State.Terminal() && !before.State.Terminal() {",
			"if before.HasEnv && after.State.Terminal() && after.Seq < 0 {",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestErasedEnvironmentIsNotInTheFile", "TestContract/rules/apply"},
	},
	{
		Name: "env-quoted-in-errors", Fault: "work-queue 9",
		Text: "environment values in an agent's error go into the row, the journal and the log",
		File: "internal/execution/mask.go",
		Edits: []Edit{{
			"return len(v) < minMaskedBytes",
			"return len(v) < 100*minMaskedBytes",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault09EnvStaysOutOfLogsAndJournal"},
	},
	{
		Name: "new-key-with-each-try", Fault: "work-queue 10",
		Text: "a schedule that got no answer submits again with another idempotency key",
		File: "internal/schedule/firing.go",
		Edits: []Edit{{
			"Key(t.row.ID, f.run.ID)",
			"Key(t.row.ID, fmt.Sprint(f.run.ID, f.run.Attempts))",
		}},
		Package: "internal/schedule", Tests: []string{"TestIncidentLostResponseRunsJobTwice"},
	},
	{
		Name: "no-answer-taken-for-a-no", Fault: "work-queue 10",
		Text: "an offer without an answer is repeated, although the agent may have accepted it",
		File: "internal/execution/push/run.go",
		Edits: []Edit{{
			"default: // sent, without a conclusive answer\n\t\tr.ask(ctx, err)",
			"default: // sent, without a conclusive answer\n\t\tr.refuse(ctx, err.Error())",
		}},
		Package: "internal/execution/push", Tests: []string{"TestFault10LostResponseRunsOnce", "TestLostReplyIsAskedFor"},
	},
	{
		Name: "impossible-dates-taken", Fault: "work-queue 11",
		Text: "a cron expression that never fires is not refused",
		File: "internal/cron/cron.go",
		Edits: []Edit{{
			"if e.days&e.possibleDays() == 0 && (e.anyDay || e.anyWeek) {",
			"if e.days == 0 && (e.anyDay || e.anyWeek) {",
		}},
		Package: "internal/cron", Tests: []string{"TestIncidentImpossibleDatesFireDaily"},
	},
	{
		Name: "one-submission-at-a-time", Fault: "work-queue 12",
		Text: "schedules submit one after another: a slow one delays all",
		File: "internal/schedule/schedule.go",
		Edits: []Edit{{
			"const maxTurns = 1000",
			"const maxTurns = 1",
		}},
		Package: "internal/schedule", Tests: []string{"TestSlowSubmissionDelaysNoOtherJob"},
	},
	{
		Name: "missed-runs-dropped", Fault: "work-queue 12",
		Text: "firings missed while no scheduler ran are dropped, whatever the schedule says",
		File: "internal/schedule/plan.go",
		Edits: []Edit{{
			"case row.Missed == signalbox.MissedAll && window.Before(late):",
			"case row.Missed == signalbox.MissedAll && late.Before(window):",
		}},
		Package: "internal/schedule", Tests: []string{"TestIncidentMissedRunsAreDropped"},
	},
	{
		Name: "runs-overlap", Fault: "work-queue 12",
		Text: "a firing does not check whether the previous task has ended",
		File: "internal/schedule/firing.go",
		Edits: []Edit{{
			"if ended {\n\t\treturn true, nil\n\t}",
			"if ended || before != \"\" {\n\t\treturn true, nil\n\t}",
		}},
		Package: "internal/schedule", Tests: []string{"TestIncidentRunsOverlap"},
	},
	{
		Name: "any-event-in-any-state", Fault: "work-queue 13",
		Text: "an event is accepted in a state for which the table has no row",
		File: "next.go",
		Edits: []Edit{{
			"move := step.from[t.State]\n",
			"move := step.from[t.State]\n\tfor _, any := range step.from {\n\t\tif move == nil {\n\t\t\tmove = any\n\t\t}\n\t}\n",
		}},
		Package: ".", Tests: []string{"TestNext(Table|Rules|Fences|Claim|Cancel|Requeue|Repeated|Run|Results|Messages|Times|Stop)"},
	},
}
