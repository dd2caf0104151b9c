// Package toolqueue bounds how many calls of a tool run side by side, over
// all sessions of a process: named queues with a capacity each, first come,
// first served.
//
// A queue has slots. Acquire takes one, or waits in line for it, and Release
// hands it to the first in line. A caller that gives up, because its context
// ends or its wait is over, leaves the line at once and never touches a slot.
//
//	queues := toolqueue.New(toolqueue.Hooks{})
//	err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1}})
//	permit, err := queues.Acquire(ctx, "browser", toolqueue.Who{Tool: "browser__click", Session: "s1"})
//	defer permit.Release()
//
// TryAcquire takes a slot only if one is free, AcquireWithin bounds the wait.
// New makes Queues without a queue, also without Default: Configure makes them.
//
// A slot can also be held by a session for longer than one call: see Lease.
//
// A queue can be that of several processes: see Queues.Share. Its slots and its
// line are then kept in a place that all of them reach, a ticket for each call;
// a process that does not reach it any more is told what it has lost before
// another can have it.
//
// While nobody waits, the first eight slots of a queue of this process are taken
// and given back without a lock and without reading a clock, in some 20 ns; those
// beyond are taken under the lock, in some 130 ns. Once somebody waits, every
// slot is handed on under the lock, to the first in line. Lining up, giving up
// and handing on cost the same however many wait. Nothing of this allocates in
// the long run, but for the timer of a wait with a bound (AcquireWithin,
// Config.MaxWait) and for what a shared queue sends and keeps.
package toolqueue
