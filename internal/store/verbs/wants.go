package verbs

// wants collects what verbs need, each item once.
type wants struct {
	Want
	asked       map[wanted]struct{}
	readyQueues []*readyQueue
	any         bool
}

type wanted struct {
	what byte
	a, b string
}

func (w *wants) clear() {
	if !w.any {
		return
	}
	for _, l := range w.readyQueues {
		l.need, l.wanted = 0, false
	}
	*w = wants{}
}

// once reports whether an item is wanted for the first time.
func (w *wants) once(what byte, a, b string) bool {
	w.any = true
	key := wanted{what, a, b}
	if _, known := w.asked[key]; known {
		return false
	}
	if w.asked == nil {
		w.asked = map[wanted]struct{}{}
	}
	w.asked[key] = struct{}{}
	return true
}

func (w *wants) task(id string) {
	if w.once('t', id, "") {
		w.Tasks = append(w.Tasks, id)
	}
}

func (w *wants) key(key string) {
	if w.once('k', key, "") {
		w.Keys = append(w.Keys, key)
	}
}

func (w *wants) queue(queue string) {
	if w.once('q', queue, "") {
		w.Queues = append(w.Queues, queue)
	}
}

func (w *wants) limit(limit string) {
	if w.once('l', limit, "") {
		w.Limits = append(w.Limits, limit)
	}
}

func (w *wants) turn(session string) {
	if w.once('s', session, "") {
		w.Turns = append(w.Turns, session)
	}
}

func (w *wants) head(session string, n int) {
	if w.once('h', session, "") {
		w.Heads = append(w.Heads, HeadWant{session, n})
	}
}

func (w *wants) slots(agent string) {
	if w.once('a', agent, "") {
		w.Slots = append(w.Slots, agent)
	}
}

func (w *wants) doc(key DocKey) {
	if w.once('d', key.Kind, key.ID) {
		w.Docs = append(w.Docs, key)
	}
}

func (w *wants) page(kind string) {
	if w.once('p', kind, "") {
		w.Pages = append(w.Pages, Page{Kind: kind})
	}
}

func (w *wants) readyQueue(l *readyQueue) {
	w.any = true
	if !l.wanted {
		l.wanted = true
		w.readyQueues = append(w.readyQueues, l)
	}
}

func (w *wants) request(seq int64) {
	w.any = true
	w.Requests = append(w.Requests, seq)
}
