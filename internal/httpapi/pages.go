package httpapi

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// pagesRoot is where the pages begin.
const pagesRoot = "/ui/"

// home is GET /: it leads to the pages.
func (d *Server) home(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.Pages == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "this director has no pages")
	}
	http.Redirect(w, r, pagesRoot, http.StatusSeeOther)
	return nil
}

// page is GET /ui/…: the pages and what they are made of.
func (d *Server) page(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.Pages == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "this director has no pages")
	}
	httpio.ExtendWriteDeadline(w)
	d.cfg.Pages.ServeHTTP(w, r)
	return nil
}
