// Package storetest is the conformance suite that every store passes.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// Each case is named for the rule of the contract that it checks, and stands
// in the file of the verb that the rule is about. After each case, Invariants
// must hold. Compare runs random histories on two stores or more and wants the
// same answers from all. Cases are counted: a suite of which one did not run to
// its end, because nothing was there to run it on, fails.
//
// Where the contract leaves a choice, the model (storetest/model) is the reference:
//
//   - Numbers. Seq, Place and journal Seq begin at 1 and grow by one for each
//     row stored; a refused verb uses none. A fence is one above the higher of
//     the last fence and FenceAbove. No number starts again after a Prune.
//     Isolated slots are numbered from FirstIsolatedSlot; a free slot is the
//     lowest one of its sort.
//   - Submit looks for the idempotency key first (so a replay succeeds when
//     the limit is reached), then for the id (CodeConflict if it exists), then
//     at the room (CodeAgentBusy), then at the cap. A replay returns the row
//     as it is now and changes nothing, no session either. FollowSession wins
//     over any queue that was asked for. Its entry is SubmitEntry. A store may
//     say the place in line with it: then Position says the same.
//   - A Room has room where the task could start at once: while fewer ready
//     tasks stand in its queues than slots are free, each agent for itself, and
//     the fleet has that many left; and the task's queue is not paused, its time
//     has come, and no turn of its session is ready or in flight. Tasks that
//     are not ready take nobody's room. A withheld row is a slot in use.
//     Ready tasks that a slot is free for are about to start: they count
//     neither in QueuedAs nor against the cap. Without a Room, QueuedAs is
//     stored as it came.
//   - A Chat chooses the session before the room is checked, and writes it
//     after the task is accepted, without an entry. It goes on with no session
//     that is archived or gone: a current one is passed over, one that was
//     asked for is refused (CodeConflict), whichever agent holds it. One that
//     was asked for is not changed but for Current, and LastUsed stays until a
//     turn is accepted. A task without a Chat may wait in any session.
//   - Readiness in a session is a function of its tasks: none while one is in
//     flight, else the first by order whose time has come. So a task that is
//     ready gives way to one that comes to stand before it, and to a turn
//     that an agent turns out to run. What was ready counts as due when the
//     clock goes back. It changes neither Rev nor the journal.
//   - Wake takes due tasks by NotBefore, then Place. It neither counts nor
//     names those whose session lets another one go first. Where the limit
//     cuts, next is the NotBefore of the first one left, which has passed;
//     else it is the earliest NotBefore still to come, of whatever session.
//   - Claim counts every slot row of the agent against Slots, withheld rows
//     and those above Slots too. A lease whose end has passed still holds its
//     slot. The ceiling over all agents counts no slots of the director's own
//     executor (signalbox.ExecutorKind). A pause whose UntilMS is at or before Now holds nothing back, and
//     stays listed until Resume. An agent whose own queue is paused gets nothing,
//     whatever queues it asks for; in a Room it counts as if it were not there.
//     Isolated slots go by their own queue alone.
//   - Apply looks for the task (CodeNotFound), then at Rev (ErrStale), then
//     refuses SlotTake (CodeConflict). Seq, Place, EnqueuedAt, Ready and the
//     idempotency key are the stored ones; with Back, EnqueuedAt comes from
//     Entry.At. A slot row that is gone or has another fence is left alone
//     without an error. A nil Result keeps the stored one.
//   - A bind sets LastUsed to now, makes the session active, and counts the
//     turn: at the acceptance, or at the end where the agent named the session
//     only then (for a task that named it itself: where none was counted yet).
//     A new row has the task's Source, Owner and Preview. It is current only
//     where the agent chose it for a chat; one that another agent held is not
//     current at the new one. A session that another agent holds is bound only
//     by a task that named it: an agent that names it for one that came without
//     is not believed, and the task stays without. A bind moves all pending
//     tasks of the session whose queue is not "agent:…"; each gets a new Rev,
//     none an entry.
//   - PutSession looks at the stored row (ErrStale), then for turns under way
//     (CodeConflict, also where nothing would change), then stores what it is
//     given; "" is the active state. The row is that of after.ID: a before with
//     another id is stale. Sessions that lose Current by it get no entry.
//   - KeepStale keeps one word for each fence, the last; a fence below the ten
//     highest is dropped, and not counted in the usage. Stales of an unknown task are CodeNotFound, Children
//     of one are none: a parent may have been pruned.
//   - Usage goes by Change.Used and AddStale: a result without figures adds
//     nothing, one with figures adds a run to the row of its key, on the day of
//     Entry.At or Stale.At. Where there is no row for it, Fold says which it is by
//     the number of rows of that day. RestoreUsage stores what it is given, under
//     its key. Rows are sorted by their key, names byte by byte.
//   - AppendAudit cuts At to the millisecond before it sums. A log is filtered
//     to its end: an answer below the limit means that there is no more.
//     Tokens, users and audit rows write no journal entry.
//   - PutSchedule looks at the revision (ErrStale), then at the name, then at
//     the number of schedules, then at the runs (CodeConflict, also where one
//     id stands twice in the call). Of a schedule it stores what it is given but
//     Rev, of a run all but ScheduleID. A run older than those that are kept is
//     dropped at once, as is an open one when it is decided. FiredAt is compared
//     to the millisecond. OpenRuns are sorted by FiredAt, schedule, then ID.
//   - Snapshot has each line's head as Waiting lists it. Entry is the newest Seq
//     that was given, even where the journal was pruned since.
//   - Beat goes by StepBeat. It is compared to the millisecond. A holding counts
//     while its director has the Run and the Since of when it took the agent:
//     what a director held that is gone, was started again or let its lease run
//     out is nobody's, and Holders leaves it out; that of a dead one stands
//     until somebody takes it.
//     A director, or a word of an agent, is forgotten a day after its end, at
//     the next beat of anybody. RemoveAgent forgets who held the agent and what
//     it said.
//   - Tickets goes by StepTickets. One pair of numbers serves all tool queues,
//     and is apart from the Place and Fence of tasks. A step that says nothing
//     but its Queue changes nothing: so a tool queue is read. What ran out is
//     listed until the next step of its queue.
//   - Renew counts withheld rows. PutAgent keeps the first CreatedAt, which is
//     no difference. RemoveAgent of an unknown agent is CodeNotFound; any slot
//     row, withheld too, is CodeConflict. SetPause always writes its entry,
//     Resume only where there was a pause.
//   - Prune takes the oldest ends first (EndedAt, then Seq). A session goes
//     when it was last used before the time and no task at all names it. Of
//     the journal goes the beginning up to the first entry that is not older,
//     whatever the limit. Slot rows stay.
//   - Orders: Overdue by WaitUntil, then Place; History by EndedAt, then Seq,
//     both falling; Agents, Slots, Pauses, Tokens and Users by name, byte by byte.
//     Sessions by LastUsed, then id, both falling.
//   - Limits at or below 0 give nothing; History, Sessions and AuditLog refuse
//     one outside 1 to 1000, and a cursor they did not make (CodeValidation).
//     Find takes every character as it is, letters in their case; "" fits all.
//     Text of a HistoryQuery fits without regard to the case of any letter.
//   - SessionTasks of "" is empty. Durations are never negative. Position is
//     approximate above 1,000. Limit "" is counted like any other.
//   - A context that is done at the call: CodeStoreFailed around ctx.Err().
//     A closed store: CodeUnavailable.
package storetest
