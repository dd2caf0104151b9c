// Package engine holds the rules of Signalbox: what may be submitted, which
// task a free slot gets, what an agent's answer means, who may stop what. It
// applies signalbox.Next to rows of a store, and is the only one who does.
//
// Every verb is one method and one file. A verb reads the row, asks Next for
// the change, and hands it to the store, which writes it only if the row is
// still as it was read; if not, the verb begins again. So a verb needs no
// lock, and any number of engines can share a store.
//
// After a change is durable, and never before, the engine tells its
// observers (dispatcher, telemetry) and wakes those who wait for the task.
package engine
