package verbs

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// The packed rows of directors and tool queues.

func damaged(what, id string) error {
	return signalbox.Errorf(signalbox.CodeStoreCorrupt, "%s %q cannot be read: its row is damaged", what, id)
}

func directorBody(d *store.Director) []byte {
	p := pack.New(128)
	p.Texts(d.Run, d.URL, d.Version, d.Key)
	p.Times(d.StartedAt, d.Expires, d.Since)
	p.Flags(d.Draining)
	return p.Packed()
}

func readDirector(id string, body []byte) (store.Director, error) {
	r := pack.Read(body)
	d := store.Director{
		ID: id, Run: r.Text(), URL: r.Text(), Version: r.Text(), Key: r.Text(), StartedAt: r.Time(), Expires: r.Time(), Since: r.Time(),
	}
	r.Flags(&d.Draining)
	if r.Bad {
		return d, damaged("director", id)
	}
	return d, nil
}

func holdingBody(h *store.Holding) []byte {
	p := pack.New(64)
	p.Texts(h.Director, h.Run)
	p.Times(h.Since)
	return p.Packed()
}

func readHolding(agent string, body []byte) (store.Holding, error) {
	r := pack.Read(body)
	h := store.Holding{Agent: agent, Director: r.Text(), Run: r.Text(), Since: r.Time()}
	if r.Bad {
		return h, damaged("the director of agent", agent)
	}
	return h, nil
}

func heardBody(h *store.Heard) []byte {
	p := pack.New(32 + len(h.Status))
	p.Times(h.At)
	p.Texts(string(h.Status))
	p.Flags(h.Status != nil)
	return p.Packed()
}

func readHeard(agent string, body []byte) (store.Heard, error) {
	r := pack.Read(body)
	h := store.Heard{Agent: agent, At: r.Time()}
	status, has := r.Bytes(), false
	if r.Flags(&has); has {
		h.Status = append([]byte{}, status...)
	}
	if r.Bad {
		return h, damaged("the word of agent", agent)
	}
	return h, nil
}

func ticketBody(t *store.Ticket) []byte {
	p := pack.New(128)
	p.Texts(t.Queue, t.Owner, t.Session, t.Agent, t.Tool, t.Execution)
	p.Ints(t.Place, t.Fence)
	p.Times(t.Since, t.Granted, t.Expires, t.Idle, t.Ends)
	p.Flags(t.Leased, t.Used, t.Over)
	if t.Key != "" { // earlier releases stored none
		p.Texts(t.Key)
	}
	return p.Packed()
}

func readTicket(id string, body []byte) (store.Ticket, error) {
	r := pack.Read(body)
	t := store.Ticket{
		ID: id, Queue: r.Text(), Owner: r.Text(), Session: r.Text(), Agent: r.Text(), Tool: r.Text(), Execution: r.Text(),
		Place: r.Int(), Fence: r.Int(), Since: r.Time(), Granted: r.Time(), Expires: r.Time(), Idle: r.Time(), Ends: r.Time(),
	}
	r.Flags(&t.Leased, &t.Used, &t.Over)
	if r.More() {
		t.Key = r.Text()
	}
	if r.Bad {
		return t, damaged("ticket", id)
	}
	return t, nil
}

func limitsBody(list []store.ToolLimit) []byte {
	p := pack.New(64)
	p.Int(int64(len(list)))
	for i := range list {
		l := &list[i]
		p.Texts(l.Key, l.Why)
		p.Int(int64(l.Full))
		p.Times(l.Closed)
	}
	for i := range list {
		p.Times(list[i].Since)
	}
	return p.Packed()
}

func readLimits(queue string, body []byte) (list []store.ToolLimit, err error) {
	r := pack.Read(body)
	for n := r.Int(); n > 0 && !r.Bad; n-- {
		list = append(list, store.ToolLimit{Key: r.Text(), Why: r.Text(), Full: time.Duration(r.Int()), Closed: r.Time()})
	}
	for i := 0; i < len(list) && r.More(); i++ {
		list[i].Since = r.Time()
	}
	if r.Bad {
		return nil, damaged("the limits of tool queue", queue)
	}
	return list, nil
}

// given is the newest place and fence given to tickets.
type given struct{ place, fence int64 }

func givenBody(g given) []byte {
	p := pack.New(16)
	p.Ints(g.place, g.fence)
	return p.Packed()
}

func readGiven(id string, body []byte) (given, error) {
	r := pack.Read(body)
	g := given{r.Int(), r.Int()}
	if r.Bad {
		return g, damaged("the count of", id)
	}
	return g, nil
}
