// Package dashboard serves the dashboard: static files that use only the public
// API. There is no build step: the files in assets are served as they are.
//
// Every path below /ui/ gets the same document, whose script shows the page for
// the path. All other files are under /ui/assets/HASH/, where HASH depends on the
// content of all files. So a file at an address never changes, browsers may keep
// it for ever, and a new version of the program has new addresses.
//
// Text from agents and people reaches the pages only as JSON, and the document
// only as text nodes. The content security policy of each answer enforces that.
package dashboard

import (
	"net/http"
	"strings"
	"sync"
)

const (
	root       = "/ui/"
	assetsRoot = root + "assets/"
)

// Policy is the content security policy of the pages. It forbids inline scripts and
// styles, content from other hosts, and text that becomes markup or code. The only
// trusted types policy allows a few script addresses: the worker that all tabs
// share, the chart library and the parts of Prism (assets/lib/trusted.js).
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types signalbox"

// pages is the handler for all paths below root.
type pages struct {
	// load returns the assets by request path, and the document. It runs at the first
	// request, so that it does not delay the start of a director.
	load func() (assets map[string]*file, index *file)
}

// New returns the handler of /ui/ and all paths below it.
func New() http.Handler { return &pages{load: sync.OnceValues(load)} }

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the pages are only read", http.StatusMethodNotAllowed)
		return
	}
	assets, index := p.load()
	if !strings.HasPrefix(r.URL.Path, assetsRoot) {
		h.Set("Cache-Control", "no-cache") // revalidated each time; 304 if unchanged
		index.serve(w, r)
		return
	}
	f, ok := assets[r.URL.Path]
	if !ok {
		h.Set("Cache-Control", "no-store") // an address of another version, which this director may become
		http.Error(w, "there is no such file; the page that asks is perhaps of another version: load it anew", http.StatusNotFound)
		return
	}
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	f.serve(w, r)
}
