package agentd

import (
	"math"
	"net/http"
	"strconv"

	"github.com/signalbox-ai/signalbox/api"
)

func (d *Daemon) getHistory(w http.ResponseWriter, req *http.Request) {
	page, ref := countParam(req, "page", 1, math.MaxInt32)
	if ref == nil {
		var limit int
		if limit, ref = countParam(req, "limit", 20, historySize); ref == nil {
			h, err := d.history(page, limit)
			if err != nil {
				replyError(w, err)
				return
			}
			reply(w, http.StatusOK, h)
			return
		}
	}
	replyError(w, ref)
}

// historyPreview bounds the answers in a list; each is whole under its id.
const historyPreview = 2 << 10

// history lists ended runs, newest first.
func (d *Daemon) history(page, limit int) (api.AgentHistory, error) {
	d.mu.Lock()
	ended := d.ended[:len(d.ended):len(d.ended)]
	d.mu.Unlock()
	h := api.AgentHistory{Entries: []api.AgentTaskStatus{}, Page: page, Limit: limit, Total: len(ended)}
	h.TotalPages = (h.Total + limit - 1) / limit
	first := len(ended) - 1 - (page-1)*limit
	for i := first; i >= 0 && i > first-limit; i-- {
		s, err := ended[i].status(historyPreview)
		if err != nil {
			return h, err
		}
		h.Entries = append(h.Entries, s)
	}
	return h, nil
}

func countParam(req *http.Request, name string, def, most int) (int, *refusal) {
	s := req.URL.Query().Get(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, invalid("%s is %q: 1 to %d", name, preview(s), most)
	}
	return n, nil
}
