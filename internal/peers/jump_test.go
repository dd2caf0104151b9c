package peers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/peers"
)

// TestIncidentAServerClockThatJumpsLapsesNobody: if the server's clock is set, forward or back, no lease
// ends, nothing is killed, and no agent is held twice.
func TestIncidentAServerClockThatJumpsLapsesNobody(t *testing.T) {
	inCluster(t, 40, func(cl *cluster) {
		a, b, c := cl.director("a").start(), cl.director("b").start(), cl.director("c").start()
		cl.pass(7 * time.Second)
		before := cl.allHeld(a, b, c)
		gained := len(a.gained) + len(b.gained) + len(c.gained)
		lost := a.lost + b.lost + c.lost
		for _, by := range []time.Duration{30 * time.Second, -30 * time.Second, time.Hour, -2 * time.Hour, 25 * time.Hour, -5 * time.Minute} {
			cl.world.JumpClock(by)
			for range 300 {
				cl.pass(50 * time.Millisecond)
				cl.allHeld(a, b, c) // all agents, at every moment
			}
		}
		if after := cl.allHeld(a, b, c); !slices.Equal(before, after) {
			cl.Errorf("shares %v, then %v", before, after)
		}
		for _, s := range []*member{a, b, c} {
			if len(s.lapses)+len(s.dead) > 0 || s.superseded != nil {
				cl.Errorf("%s: lapses %v, dead %v, superseded %v", s.id, s.lapses, s.dead, s.superseded)
			}
			if s.holdingsLost == 0 {
				cl.Errorf("%s did not look whether what it runs is still its own", s.id)
			}
		}
		if more := len(a.gained) + len(b.gained) + len(c.gained) - gained; more != 0 || a.lost+b.lost+c.lost != lost {
			cl.Errorf("gained %d times, lost %d times", more, a.lost+b.lost+c.lost-lost)
		}
		if held, err := a.view.Holders(cl.Context()); err != nil || len(held) != 40 {
			cl.Errorf("the store knows the directors of %d agents (%v)", len(held), err)
		}
	})
}

// After the clock was set by more than a day, all rows look so old that the first director that reads them
// removes the others. These have not read yet, and must not conclude that directors left.
func TestAServerClockThatIsSetByMoreThanADay(t *testing.T) {
	for offset := time.Duration(0); offset < 4*time.Second; offset += 130 * time.Millisecond {
		inCluster(t, 40, func(cl *cluster) {
			a, b, c := cl.director("a").start(), cl.director("b").start(), cl.director("c").start()
			cl.pass(7*time.Second + offset)
			before := cl.allHeld(a, b, c)
			cl.world.JumpClock(25 * time.Hour)
			for range 300 {
				cl.pass(50 * time.Millisecond)
				cl.allHeld(a, b, c)
			}
			if after := cl.allHeld(a, b, c); !slices.Equal(before, after) || len(a.dead)+len(b.dead)+len(c.dead) > 0 {
				cl.Errorf("after %s: shares %v, then %v; dead %v %v %v", offset, before, after, a.dead, b.dead, c.dead)
			}
		})
	}
}

// Even while agents move, no agent is held twice.
func TestAServerClockThatJumpsWhileOneJoinsAndOneDrains(t *testing.T) {
	for _, by := range []time.Duration{30 * time.Second, -30 * time.Second, -time.Hour} {
		for _, after := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, 3 * time.Second} {
			inCluster(t, 40, func(cl *cluster) {
				a, b := cl.director("a").start(), cl.director("b").start()
				cl.pass(6 * time.Second)
				a.slow, b.slow = 1500*time.Millisecond, 700*time.Millisecond
				c := cl.director("c").start()
				cl.pass(after)
				cl.world.JumpClock(by)
				done := make(chan struct{})
				go func() {
					a.peers.Yield(cl.Context())
					close(done)
				}()
				for range 400 {
					cl.pass(50 * time.Millisecond)
					cl.heldCounts(a, b, c) // and Gained fails if Lost is still running
				}
				<-done
				if n := cl.allHeld(a, b, c); n[0] != 0 || n[1] == 0 || n[2] == 0 {
					cl.Errorf("%s after %s: shares %v", by, after, n)
				}
				if n := len(a.lapses) + len(b.lapses) + len(c.lapses); n > 0 {
					cl.Errorf("%s after %s: %d lapses", by, after, n)
				}
			})
		}
	}
}

// TestIncidentAServerClockThatGoesBackKeepsNobodyAlive: if a director dies while the server's clock is set
// back, its agents are taken in time, not when that clock is where it was again.
func TestIncidentAServerClockThatGoesBackKeepsNobodyAlive(t *testing.T) {
	for _, by := range []time.Duration{-5 * time.Second, -30 * time.Second, -5 * time.Minute, -48 * time.Hour} {
		inCluster(t, 40, func(cl *cluster) {
			a, b, c := cl.director("a").start(), cl.director("b").start(), cl.director("c").start()
			cl.pass(7 * time.Second)
			a.kill()
			cl.world.JumpClock(by)
			died := time.Now()
			for sum := 0; sum < len(cl.agents); {
				if time.Since(died) > peers.Lease+peers.Every+time.Second {
					cl.Fatalf("%s: %d of %d agents are held after %s", by, sum, len(cl.agents), time.Since(died))
				}
				cl.pass(10 * time.Millisecond)
				n := cl.heldCounts(b, c)
				sum = n[0] + n[1]
			}
			if took := time.Since(died); took < peers.Safe {
				cl.Errorf("%s: taken after %s, while the dead one could have held on to them", by, took)
			}
			if !slices.Equal(b.dead, []string{"a"}) || !slices.Equal(c.dead, []string{"a"}) || len(b.lapses)+len(c.lapses) > 0 {
				cl.Errorf("%s: dead %v %v, lapses %v %v", by, b.dead, c.dead, b.lapses, c.lapses)
			}
		})
	}
}

// A machine that was paused without its clocks noticing (a virtual machine that was migrated) releases what
// others took as soon as it learns of it.
func TestIncidentAMachineWhoseClocksStoodStillLetsGo(t *testing.T) {
	inCluster(t, 40, func(cl *cluster) {
		a, b := cl.director("a").start(), cl.director("b").start()
		cl.pass(7 * time.Second)
		resume := a.kill() // late calls are possible: only what it holds counts
		const still = 30 * time.Second
		for range 300 {
			a.note(func() { a.behind += still / 300 })
			cl.pass(still / 300)
		}
		resume()
		cl.pass(time.Second)
		for range 200 {
			cl.heldCounts(a, b)
			cl.pass(50 * time.Millisecond)
		}
		cl.allHeld(a, b)
	})
}
