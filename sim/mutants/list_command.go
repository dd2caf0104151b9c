package mutants

// The faults of async-task-queue.
var commandMutants = []Mutant{
	{
		Name: "secrets-stay-in-the-arguments", Fault: "async-task-queue secrets",
		Text: "encrypted arguments are also stored in clear",
		File: "internal/execution/local/submit.go",
		Edits: []Edit{{
			"delete(all, name)\n",
			"",
		}},
		Package: "internal/execution/local", Tests: []string{"TestIncidentSecretsAreNotStoredInClear"},
	},
	{
		Name: "all-rows-read-for-one", Fault: "async-task-queue rewrite",
		Text: "a change of one task reads all tasks",
		File: "internal/store/sqlite/statements.go",
		Edits: []Edit{{
			"`UPDATE tasks SET state = ?2, body = ?3, ready = ?4 WHERE seq = ?1`",
			"`UPDATE tasks SET state = ?2, body = ?3, ready = ?4 WHERE seq + 0 = ?1`",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestEveryStatementUsesAnIndex"},
	},
	{
		Name: "journal-grows-for-ever", Fault: "async-task-queue growth",
		Text: "pruning does not shorten the journal",
		File: "internal/store/verbs/prune.go",
		Edits: []Edit{{
			"if x.results.cut > 0 {",
			"if false {",
		}},
		Package: "internal/store/memory", Tests: []string{"TestConformance/rules/prune"},
	},
	{
		Name: "only-the-child-is-killed", Fault: "async-task-queue child",
		Text: "processes that a program started are not killed",
		File: "internal/proc/kin.go",
		Edits: []Edit{{
			"} else if group && (e.pgid == k.id.PID || e.sid == k.id.PID) {",
			"} else if group && e.pid == k.id.PID && (e.pgid == k.id.PID || e.sid == k.id.PID) {",
		}, {
			"for grew := true; grew; {",
			"for grew := false; grew; {",
		}, {
			"&& marked(e.pid, k.id.Mark) {",
			"&& e.pid == k.id.PID && marked(e.pid, k.id.Mark) {",
		}, {
			"if !in[e.pid] && left(e, k.id, k.stamp, self.sid) {",
			"if false && left(e, k.id, k.stamp, self.sid) {",
		}},
		Package: "internal/proc", Tests: []string{"TestEndLeavesNothingAlive"},
	},
	{
		Name: "args-dropped", Fault: "async-task-queue args",
		Text: "a command is started without its args",
		File: "internal/command/run.go",
		Edits: []Edit{{
			"Argv: append([]string{path}, u.t.conf.Args...),",
			"Argv: []string{path},",
		}},
		Package: "internal/command", Tests: []string{"TestSeedPayload"},
	},
	{
		Name: "result-not-stored", Fault: "async-task-queue results",
		Text: "the result of a task is not stored",
		File: "internal/store/sqlite/commit.go",
		Edits: []Edit{{
			"for i := range d.Results {",
			"for i := range d.Results[:0] {",
		}},
		Package: "internal/store/sqlite", Tests: []string{"TestContract/rules/apply"},
	},
	{
		Name: "list-without-what-waits", Fault: "async-task-queue list",
		Text: "the list of tool tasks omits those that wait",
		File: "internal/store/scan.go",
		Edits: []Edit{{
			"i < len(s.Queues); i++ {",
			"i < 0*len(s.Queues); i++ {",
		}},
		Package: "internal/execution/local", Tests: []string{"TestList"},
	},
}
