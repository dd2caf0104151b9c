// Package storetest is the conformance suite that every store passes.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// Each case is named after the rule that it checks and is in the file of the verb that the rule is about.
// After each case, Invariants must hold. Compare runs random histories on two or more stores, which must give
// the same answers. Cases are counted: a suite fails if one of its cases did not run to the end.
//
// The rules below complete the contract in package store. Where both leave a choice, the model
// (storetest/model) is the reference.
//
// # Numbers
//
//   - Seq, Place and the journal's Seq begin at 1. Each stored row takes the next
//     number, and a refused verb takes none. No number is used again, also after Prune.
//   - A fence is one above the last fence or FenceAbove, whichever is higher.
//   - Isolated slots are numbered from FirstIsolatedSlot. A claim gets the lowest free
//     slot of its sort.
//
// # Submit
//
//   - Checks come in this order: the idempotency key (so a replay succeeds even when
//     the limit is reached), the id (CodeConflict if it exists), the room
//     (CodeAgentBusy), the cap.
//   - A replay returns the row as it is now and changes nothing, including sessions.
//   - FollowSession overrides the queue that was asked for.
//   - The journal entry is SubmitEntry.
//   - A store may return the position with the row; Position then returns the same.
//   - A Room has room if the task could start at once: its queue is not paused, its
//     NotBefore has passed, no turn of its session is ready, in flight or parked, and its
//     queues have fewer ready tasks than there are free slots, counted per agent and
//     over the fleet. Tasks that are not ready use no room. A withheld row is a slot
//     in use.
//   - Ready tasks for which a slot is free are about to start: they count neither in
//     QueuedAs nor against the cap. Without a Room, QueuedAs is stored as given.
//   - A Chat chooses the session before the room is checked and stores it after the
//     task was accepted, without a journal entry. An archived or gone session is
//     skipped if it was the current one and refused (CodeConflict) if it was asked for,
//     whichever agent holds it. If a session was asked for, only its Current changes;
//     LastUsed stays until a turn is accepted. A task without a Chat may wait in any
//     session.
//
// # Readiness
//
//   - At most one pending task of a session is ready: none while a turn is in flight,
//     else the first in order that is due, unless a parked one is before it. A ready
//     task loses its readiness to one that moves ahead of it, and to a turn that turns
//     out to run at an agent.
//   - A task that was ready counts as due when the clock goes back.
//   - Readiness changes neither Rev nor the journal.
//   - Wake takes due tasks by NotBefore, then Place. It neither counts nor returns
//     tasks that wait for another turn of their session. If the limit cuts, next is the
//     NotBefore of the first one left, which has passed; else it is the earliest future
//     NotBefore, of any session.
//
// # Claim
//
//   - Every slot row of the agent counts against Slots, including withheld rows and
//     rows above Slots. An expired lease still holds its slot.
//   - The fleet limit does not count slots of the director's executors
//     (signalbox.ExecutorKind).
//   - A pause whose UntilMS is at or before Now has no effect, and is listed until
//     Resume. An agent whose own queue is paused gets nothing from any queue, and does
//     not count in a Room. Isolated slots depend on their own queue alone.
//   - An account that is not known is open. While an account is being tried, one claim is
//     let through and becomes its Probe, without an entry, unless the slot row of the
//     current Probe exists with its fence, withheld or not. A task that runs anyway is
//     never the Probe.
//   - Held is set if the agent is drained, or has a free slot and its account is the
//     reason why nothing is claimed, whether a task waits or not.
//
// # Apply
//
//   - Checks come in this order: the task (CodeNotFound), Rev (ErrStale), SlotTake
//     (CodeConflict).
//   - Seq, Place, EnqueuedAt, Ready and the idempotency key are those stored. With
//     OrderBack, EnqueuedAt is Entry.At, but never earlier than the last one, and Place
//     is the next. With OrderTop, Bias makes the OrderKey the next Place, negated, and
//     Place itself stays.
//   - A slot row that is gone or has another fence stays as it is, without an error.
//   - A nil Result or Request keeps the stored one. A new Request keeps the stored
//     environment.
//   - The account is changed last, and its entry follows that of the change.
//   - A bind sets LastUsed to now, makes the session active and counts the turn: at the
//     acceptance, or at the end if the agent named the session only then (and, if the
//     task itself named it, only if no turn was counted yet). A new session row has the
//     task's Source, Owner and Preview. It is current only if the agent chose it for a
//     chat. A session that moves to another agent is not current there.
//   - A session that another agent holds is bound only if the task named it. If only
//     the agent named it, the task gets no session.
//   - A bind moves all pending tasks of the session whose queue is not "agent:…". Each
//     gets a new Rev and no journal entry.
//
// # Sessions
//
//   - PutSession checks the stored row (ErrStale), then turns under way (CodeConflict,
//     also if nothing would change). "" is the active state. The row is that of
//     after.ID; a before with another id is stale. Sessions that lose Current by it get
//     no journal entry.
//
// # Late reports and children
//
//   - KeepStale keeps the last report of each fence, for the ten highest fences.
//   - Stales of an unknown task is CodeNotFound. Children of one is empty, since a
//     parent may have been pruned.
//
// # Usage
//
//   - Apply adds Change.Used, KeepStale what store.AddStale returns. A result without
//     tokens and costs adds nothing; any other adds a run to the row of its key, on the
//     day of Entry.At or Stale.At. A late report that is not kept adds nothing.
//   - If there is no row of that key, UsageKey.Fold chooses the key to store under, by the
//     number of rows of that day.
//   - RestoreUsage stores a row unchanged, under its key.
//   - Rows are sorted by day, agent, schedule, owner and model, names byte by byte.
//
// # Audit, tokens and users
//
//   - AppendAudit truncates At to the millisecond before it hashes the row.
//   - A filtered page shorter than its limit is the last one.
//   - Tokens, users and audit rows write no journal entry.
//
// # Schedules
//
//   - PutSchedule checks the revision (ErrStale), the name, the number of schedules,
//     then the runs (CodeConflict, also if one id occurs twice in the call).
//   - A schedule is stored as given except Rev, and a run except ScheduleID.
//   - A run older than those that are kept is dropped at once, as is an open run when it
//     is decided. FiredAt is compared to the millisecond. OpenRuns is sorted by FiredAt,
//     schedule, then ID.
//
// # Directors
//
//   - Beat follows StepBeat, compared to the millisecond. A holding counts while its
//     director has the Run and Since under which it took the agent. Agents of a
//     director that left, was started again or let its lease expire have no holder, and
//     Holders omits them; those of a dead one stay listed until another takes them.
//   - A director, or the status of an agent, is deleted a day after its end, at the next
//     beat of any director. RemoveAgent deletes the agent's holder and status.
//
// # Tool queues
//
//   - Tickets follows StepTickets. Numbers are shared by all tool queues and separate
//     from the Place and Fence of tasks. A step with a Queue alone is a read. Expired
//     tickets are listed until the next step of their queue.
//
// # Fleet
//
//   - Renew counts withheld rows.
//   - PutAgent keeps the first CreatedAt. RemoveAgent of an unknown agent is
//     CodeNotFound; with any slot row, also a withheld one, CodeConflict.
//   - SetPause always writes its entry, Resume only if there was a pause.
//   - ChangeAccount applies NextAccount, and writes an entry if the result has a message:
//     the time of the event, the account, the message, and the person who made the event,
//     if any.
//   - RemoveAccount of an unknown account is CodeNotFound; with tasks parked at it, or if
//     its state or the time of that differs from what was seen, CodeConflict.
//
// # Prune
//
//   - The oldest ends go first (EndedAt, then Seq). A session goes if it was last used
//     before the time and no task names it. The journal loses its beginning up to the
//     first entry that is not older, regardless of the limit. Slot rows stay.
//
// # Lists
//
//   - Parked tasks count as waiting: Waiting, Counts, Lengths, Position, SessionTasks and
//     the heads of a Snapshot include them. Parked is ordered by Parking.At, then gate and
//     id.
//   - Overdue is ordered by WaitUntil, then Place; History by EndedAt, then Seq, and
//     Sessions by LastUsed, then id, all descending; Agents, Accounts, Slots, Pauses, Tokens
//     and Users by name, byte by byte.
//   - A Snapshot lists each queue's head as Waiting does. Its Entry is the newest Seq
//     given so far, even if the journal has been pruned since.
//   - A limit at or below 0 returns nothing. History, Sessions and AuditLog refuse a
//     limit outside 1 to 1000 and a cursor that they did not make (CodeValidation).
//   - Find matches characters exactly, with their case; "" matches all. The text of a
//     HistoryQuery matches regardless of case.
//   - SessionTasks of "" is empty. Durations are never negative. Position is approximate
//     above 1,000. The limit "" is counted like any other.
//
// # Errors
//
//   - With a context that is already done: CodeStoreFailed around ctx.Err().
//   - On a closed store: CodeUnavailable.
package storetest
