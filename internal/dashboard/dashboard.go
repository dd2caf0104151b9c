// Package dashboard has the pages: static files that read only the public
// API. There is no build step: what is in assets is what is served.
//
// Every path below /ui/ is a page and gets the same document; its script looks
// at the path. What the document is made of lies under /ui/assets/HASH/, where
// HASH is taken from the content of all of it: such a file never changes, so a
// browser keeps it and asks no more, and a new program has new addresses.
//
// What agents and people wrote reaches the pages only as JSON, and the document
// only as text nodes. The policy that goes with each answer holds them to it.
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

// Policy is the content security policy of the pages. Nothing inline runs or
// styles, nothing comes from elsewhere, and no text becomes markup or code.
// The one policy of trusted types lets two addresses of ours be scripts: the
// worker that all tabs share, and the chart's library (assets/lib/trusted.js).
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types signalbox"

// pages answers for all below root.
type pages struct {
	// load returns the assets, by path as it is asked for, and the document. The
	// first who asks for a page waits for it, not the start of a director.
	load func() (assets map[string]*file, index *file)
}

// New returns the handler of /ui/ and all below it.
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
		h.Set("Cache-Control", "no-cache") // asked for each time, answered 304 as long as it is the same
		index.serve(w, r)
		return
	}
	f, ok := assets[r.URL.Path]
	if !ok {
		h.Set("Cache-Control", "no-store") // another version's: this director may be that version tomorrow
		http.Error(w, "there is no such file; the page that asks is perhaps of another version: load it anew", http.StatusNotFound)
		return
	}
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	f.serve(w, r)
}
