package giveback

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The pace at which a process counts as at rest.
const (
	lookEvery = time.Second
	quietFor  = 5       // looks in a row in each of which it allocated less than
	busyBytes = 4 << 20 // this; and as working again
	busyFor   = 2       // looks in a row with as much: to come to rest anew costs more than one request for everything
)

// Percentages for the garbage collector (GOGC). The heap of a director is small
// and most of it short-lived: to collect a quarter as often gives the store's
// writer a twentieth to a tenth more (bench/sqlite). At rest nothing is gained by it.
const (
	atWork = 400
	atRest = 100
)

// Keeper looks after the memory of this process. Make one with Start.
type Keeper struct {
	pace  pace
	tuned bool // GOGC is not given: it is set here
	quit  chan struct{}
	done  chan struct{}
}

// Start sets the collector to work and begins to look. Where the environment has
// GOGC, that stands, and memory is only given back.
func Start() *Keeper {
	k := &Keeper{tuned: os.Getenv("GOGC") == "", quit: make(chan struct{}), done: make(chan struct{})}
	k.collect(atWork)
	go k.loop()
	return k
}

// Stop ends the looking and returns when it has ended.
func (k *Keeper) Stop() {
	close(k.quit)
	<-k.done
}

func (k *Keeper) loop() {
	defer close(k.done)
	tick := time.Tick(lookEvery)
	for {
		select {
		case <-k.quit:
			return
		case <-tick:
		}
		switch k.pace.next(allocated()) {
		case rests:
			k.collect(atRest)
			debug.FreeOSMemory()
			releaseProgram()
		case works:
			k.collect(atWork)
		}
	}
}

func (k *Keeper) collect(percent int) {
	if k.tuned {
		debug.SetGCPercent(percent)
	}
}

// allocated counts the bytes that were ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// turn is what a look finds.
type turn int

const (
	goesOn turn = iota
	rests       // it has come to rest
	works       // it works again
)

// pace tells work from rest.
type pace struct {
	resting   bool
	allocated uint64 // at the last look
	other     int    // looks in a row that found it busy at rest, or quiet at work
}

func (p *pace) next(allocated uint64) turn {
	busy := allocated-p.allocated >= busyBytes
	p.allocated = allocated
	if busy != p.resting {
		p.other = 0
		return goesOn
	}
	p.other++
	switch {
	case busy && p.other == busyFor:
		*p = pace{allocated: allocated}
		return works
	case !busy && p.other == quietFor:
		*p = pace{resting: true, allocated: allocated}
		return rests
	}
	return goesOn
}
