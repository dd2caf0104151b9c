// Package dashboard has the pages: static files that read only the public
// API. There is no build step: what is in assets is what is served.
package dashboard

import "net/http"

// New returns the handler of /ui/ and all below it.
func New() http.Handler { return http.NotFoundHandler() }
