// Package toolqueue bounds how many calls of a tool run concurrently over all sessions of a
// process: named queues, each with a capacity, first come, first served.
//
// A queue has slots. Acquire takes one, or waits for one, and Release passes it to the first
// waiter. A caller that gives up, because its context ends or its maximum wait is over, leaves
// the queue at once and never touches a slot.
//
//	queues := toolqueue.New(toolqueue.Hooks{})
//	err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1}})
//	permit, err := queues.Acquire(ctx, "browser", toolqueue.Who{Tool: "browser__click", Session: "s1"})
//	defer permit.Release()
//
// TryAcquire takes a slot only if one is free, AcquireWithin bounds the wait. New makes Queues
// without a queue, also without Default: Configure adds them.
//
// Update changes the capacity of a queue while it is in use: more slots go to the first waiters
// at once, fewer drain.
//
// Config.Rate bounds how often calls start: a start takes a slot and a token, both at once. A
// call that lacks one waits, in order, and is told until when (Waiting.Held). In every period of
// Rate.Per at most Rate.N + Rate.Burst calls start, by the time at which they got their slot;
// the calls of a session lease count one by one, and one that gives up after it got its slot
// counts, too.
//
// With Config.PerKey each key of the calls (Who.Key), such as a caller or an account, has all
// limits for itself, and no call waits for one of another key. At most MaxKeys are kept; a key
// is forgotten once it has no calls, a full bucket and no closing.
//
// CloseUntil has a queue start nothing until a time, as an upstream asks that answers 429, and
// opens by itself then.
//
// A session can hold a slot for longer than one call: see Lease.
//
// A queue can be shared by several processes: see Queues.Share. Its holders and waiters are
// then stored in a backend that all of them use, one ticket per call, with the tokens of its rate
// and its closings; a process that loses the backend is told so before another can have its slots.
//
// While nobody waits, the first eight slots of a local queue are taken and released without a
// lock and without reading a clock, in some 20 ns, with a rate or without; further ones under the
// lock, in some 130 ns. For that an eighth of the burst of a rate is lent at a time, and when each
// token of it was taken is not known: after a rest a bucket may lack up to an eighth. With a burst
// below eight nothing is lent: the bucket is exact, and a start reads the clock, which takes as long
// as all the rest, under the lock: in all it takes two to three times as long.
// While calls wait, every slot is passed on under the lock, to the first waiter. The cost does
// not depend on the number of waiters. Nothing of this allocates in the steady state, except
// the timer of a bounded wait (AcquireWithin, Config.MaxWait) and what a shared queue sends and
// stores.
package toolqueue
