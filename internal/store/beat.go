package store

import (
	"maps"
	"slices"
	"time"
)

// ForgetAfter is how long a store keeps a director after its end (Beat.Dead), and the last message of a pull
// agent.
const ForgetAfter = 24 * time.Hour

// Holding is the row that says which director holds an agent. It counts as long as that director lives and
// its leases have been uninterrupted since. So it need not be touched when the director dies, lets its lease
// expire, or leaves.
type Holding struct {
	Agent    string
	Director string // its ID
	Run      string // Director.Run and Director.Since when it took the agent
	Since    time.Time
}

// of reports whether it is a holding of the director in its current run.
func (h *Holding) of(d *Director) bool {
	return h.Director == d.ID && h.Run == d.Run && h.Since.Equal(d.Since)
}

// BeatRows are the rows that StepBeat needs.
type BeatRows struct {
	Directors []Director
	// Holdings are those of the agents in Beat.Take and Beat.Drop, at least.
	Holdings []Holding
	Heard    []Heard
}

// BeatChange is what a beat changes in the rows.
type BeatChange struct {
	Put    []Director // at most one: the row of the sender
	Gone   []string   // directors, by ID
	Hold   []Holding  // put, by agent
	Free   []string   // agents whose holding is deleted
	Heard  []Heard    // put, by agent
	Forgot []string   // agents whose message is deleted
}

// StepBeat implements Writer.Beat: the changes of the rows, and the answer. The agents of Drop are given up
// before those of Take are taken. Of two messages of an agent the later one is kept. Times are truncated to
// the millisecond, in UTC.
func StepBeat(rows BeatRows, b Beat) (c BeatChange, answer Peers, err error) {
	me, all, gone, err := enter(rows.Directors, &b)
	if err != nil {
		return c, answer, err
	}
	c.Gone = gone
	leaves := !me.Alive(b.Now)
	stored := all[me.ID]
	switch {
	case !leaves:
		answer.Lapsed = begin(&me, stored, b.Now)
		c.Put = []Director{me}
		all[me.ID] = &me
		c.hold(rows.Holdings, all, &me, &b, &answer)
	case stored != nil && stored.Run == me.Run:
		c.Gone = append(c.Gone, me.ID)
		delete(all, me.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		switch d := all[id]; {
		case d.Alive(b.Now):
			answer.Directors = append(answer.Directors, *d)
		case b.Now.Sub(d.Expires) > ForgetAfter && b.dead(d):
			c.Gone = append(c.Gone, id)
		}
	}
	answer.Heard = c.hear(rows.Heard, &b)
	return c, answer, nil
}

// enter returns the row of the sender as received, the other rows by ID, and the IDs of silent ones, or
// refuses the beat.
func enter(stored []Director, b *Beat) (me Director, all map[string]*Director, gone []string, err error) {
	me = b.Director
	me.StartedAt, me.Expires = toMS(me.StartedAt), toMS(me.Expires)
	all = make(map[string]*Director, len(stored)+1)
	var others []Director
	for i := range stored {
		d := &stored[i]
		if b.silent(d) {
			gone = append(gone, d.ID)
			continue
		}
		all[d.ID] = d
		if d.ID != me.ID {
			others = append(others, *d)
		}
	}
	return me, all, gone, CheckBeat(all[me.ID], others, b)
}

// begin sets since when the director's leases have been uninterrupted. If its lease had expired, or another
// process used its ID, that is now, and what it held before no longer counts.
func begin(me, stored *Director, now time.Time) (lapsed bool) {
	if stored != nil && stored.Run == me.Run && stored.Alive(now) {
		me.Since = stored.Since
		return false
	}
	me.Since = toMS(now)
	if stored != nil && stored.Run == me.Run && !me.Since.After(stored.Since) {
		me.Since = stored.Since.Add(time.Millisecond) // the clock went back
	}
	return true
}

// hold gives agents up and takes others.
func (c *BeatChange) hold(stored []Holding, all map[string]*Director, me *Director, b *Beat, answer *Peers) {
	held := make(map[string]Holding, len(stored))
	for _, h := range stored {
		held[h.Agent] = h
	}
	for _, agent := range b.Drop {
		if h, ok := held[agent]; ok && h.Director == me.ID {
			c.Free = append(c.Free, agent)
			delete(held, agent)
		}
	}
	taken := make(map[string]bool, len(b.Take))
	for _, agent := range b.Take {
		if taken[agent] {
			continue
		}
		h, ok := held[agent]
		if mine := ok && h.of(me); !mine {
			if holder := all[h.Director]; ok && holder != nil && h.of(holder) && holder.Alive(b.Now) {
				continue
			}
			c.Hold = append(c.Hold, Holding{Agent: agent, Director: me.ID, Run: me.Run, Since: me.Since})
		}
		answer.Taken, taken[agent] = append(answer.Taken, agent), true
	}
	// A holding that was given up and taken again is put, not freed.
	c.Free = slices.DeleteFunc(c.Free, func(agent string) bool { return taken[agent] })
}

// hear stores newer messages, deletes old ones, and returns the newest message of each agent.
func (c *BeatChange) hear(stored []Heard, b *Beat) []Heard {
	words := make(map[string]Heard, len(stored))
	for _, h := range stored {
		words[h.Agent] = h
	}
	news := map[string]bool{}
	for _, h := range b.Heard {
		h.At = toMS(h.At)
		if was, ok := words[h.Agent]; !ok || h.At.After(was.At) {
			words[h.Agent], news[h.Agent] = h, true
		}
	}
	var list []Heard
	for _, agent := range slices.Sorted(maps.Keys(words)) {
		switch h := words[agent]; {
		case b.Now.Sub(h.At) > ForgetAfter:
			c.Forgot = append(c.Forgot, agent)
		case news[agent]:
			c.Heard = append(c.Heard, h)
			fallthrough
		default:
			list = append(list, h)
		}
	}
	return list
}

// HoldersOf returns which director holds each agent, including dead ones, like Reader.Holders.
func HoldersOf(directors []Director, holdings []Holding) map[string]string {
	all := make(map[string]*Director, len(directors))
	for i := range directors {
		all[directors[i].ID] = &directors[i]
	}
	holders := map[string]string{}
	for i := range holdings {
		h := &holdings[i]
		if d := all[h.Director]; d != nil && h.of(d) {
			holders[h.Agent] = h.Director
		}
	}
	return holders
}

func toMS(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }
