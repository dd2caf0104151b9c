package httpapi

import (
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// pagesRoot is the root path of the pages.
const pagesRoot = "/ui/"

// pageHandlers serve the dashboard.
type pageHandlers struct{ pages http.Handler }

// home is GET /: it redirects to the pages.
func (h *pageHandlers) home(w http.ResponseWriter, r *http.Request) error {
	if h.pages == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "this director has no pages")
	}
	http.Redirect(w, r, pagesRoot, http.StatusSeeOther)
	return nil
}

// page is GET /ui/…: the pages and their assets.
func (h *pageHandlers) page(w http.ResponseWriter, r *http.Request) error {
	if h.pages == nil {
		return signalbox.Errorf(signalbox.CodeNotFound, "this director has no pages")
	}
	httpio.ExtendWriteDeadline(w)
	h.pages.ServeHTTP(w, r)
	return nil
}
