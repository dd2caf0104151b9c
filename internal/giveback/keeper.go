package giveback

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// When a process counts as idle.
const (
	lookEvery = time.Second
	quietFor  = 5       // consecutive checks, in each of which it allocated less than
	busyBytes = 4 << 20 // this; it counts as busy again
	busyFor   = 2       // after this many consecutive checks with as much: going idle again costs more than a single expensive request
)

// Percentages for the garbage collector (GOGC). The heap of a director is small and
// mostly short-lived: collecting a quarter as often makes the store's writer 5 to 10
// percent faster (bench/sqlite). Idle processes gain nothing.
const (
	atWork = 400
	atRest = 100
)

// Keeper manages the memory of this process. Make one with Start.
type Keeper struct {
	pace  pace
	tuned bool // GOGC is not set in the environment, so the keeper sets it
	quit  chan struct{}
	done  chan struct{}
}

// Start tunes the collector for load and begins the checks. If GOGC is set in
// the environment, it is left alone, and memory is only returned.
func Start() *Keeper {
	k := &Keeper{tuned: os.Getenv("GOGC") == "", quit: make(chan struct{}), done: make(chan struct{})}
	k.collect(atWork)
	go k.loop()
	return k
}

// Stop ends the checks and returns when they have ended.
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

// allocated returns the total number of bytes ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// turn is the result of a check.
type turn int

const (
	goesOn turn = iota
	rests       // it has become idle
	works       // it is busy again
)

// pace distinguishes busy from idle.
type pace struct {
	resting   bool
	allocated uint64 // at the last check
	other     int    // consecutive checks that were busy while idle, or quiet while busy
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
