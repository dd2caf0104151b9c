// Package storetest is the conformance suite that every store passes.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// Each case is named for the rule of the contract that it checks, and stands
// in the file of the verb that the rule is about. After each case, Invariants
// must hold. Compare runs random histories on two stores and wants the same
// answers from both.
//
// Where the contract leaves a choice, the memory store is the reference:
//
//   - Numbers. Seq, Place and journal Seq begin at 1 and grow by one for each
//     row stored; a refused verb uses none. A fence is one above the higher of
//     the last fence and FenceAbove. No number starts again after a Prune.
//   - Submit looks for the idempotency key first (so a replay succeeds when
//     the limit is reached), then for the id (CodeConflict if it exists), then
//     at the cap. A replay returns the row as it is now. FollowSession wins
//     over any queue that was asked for. Its entry has At, Kind, QueueID,
//     State, Queue and Source.
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
//     slot. A pause whose UntilMS is at or before Now holds nothing back, and
//     stays listed until Resume.
//   - Apply looks for the task (CodeNotFound), then at Rev (ErrStale), then
//     refuses SlotTake (CodeConflict). Seq, Place, EnqueuedAt, Ready and the
//     idempotency key are the stored ones; with Back, EnqueuedAt comes from
//     Entry.At. A slot row that is gone or has another fence is left alone
//     without an error. A nil Result keeps the stored one.
//   - A bind sets LastUsed to now. It moves all pending tasks of the session
//     whose queue is not "agent:…"; each gets a new Rev, none an entry.
//   - Renew counts withheld rows. PutAgent keeps the first CreatedAt, which is
//     no difference. RemoveAgent of an unknown agent is CodeNotFound; any slot
//     row, withheld too, is CodeConflict. SetPause always writes its entry,
//     Resume only where there was a pause.
//   - Prune takes the oldest ends first (EndedAt, then Seq). A session goes
//     when it was last used before the time and no task at all names it. Of
//     the journal goes the beginning up to the first entry that is not older,
//     whatever the limit. Slot rows stay.
//   - Orders: Overdue by WaitUntil, then Place; History by EndedAt, then Seq,
//     both falling; Agents, Slots and Pauses by name, byte by byte.
//   - Limits at or below 0 give nothing; History refuses one outside 1 to 1000
//     and a cursor it did not make (CodeValidation). Find takes every
//     character as it is, letters in their case; "" fits all. Text of a
//     HistoryQuery fits without regard to the case of any letter.
//   - SessionTasks of "" is empty. Durations are never negative. Position is
//     approximate above 1,000. Limit "" is counted like any other.
//   - A context that is done at the call: CodeStoreFailed around ctx.Err().
//     A closed store: CodeUnavailable.
package storetest
