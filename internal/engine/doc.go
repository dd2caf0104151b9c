// Package engine holds the rules of Signalbox: what may be submitted, which task a free
// slot gets, what an agent's answer means, who may stop what. It is the only package that
// applies signalbox.Next to the rows of a store.
//
// Every verb is one method. A verb reads the row, asks Next for the change and hands it to
// the store, which writes it only if the row has not changed since it was read; otherwise
// the verb retries. So a verb needs no lock, and any number of engines can share a store.
//
// After a change is durable, and never before, the engine notifies its observers
// (dispatcher, telemetry) and wakes callers that wait for the task.
package engine
