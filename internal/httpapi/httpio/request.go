package httpio

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Limits of a request beyond its body.
const (
	MaxURLBytes  = 8 << 10
	BodyTimeout  = 30 * time.Second // for the whole body to arrive
	WriteTimeout = 30 * time.Second // for one write to be taken
)

// Handler answers a request, or returns an error without answering.
type Handler func(w http.ResponseWriter, r *http.Request) error

// IsWrite reports whether the method of a request may change something.
func IsWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// HasBody reports whether a request has a body, possibly of unknown length.
func HasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// CheckMedia requires JSON for writes. It refuses forms, which any page can make a browser
// send, even without a body.
func CheckMedia(r *http.Request) error {
	if !IsWrite(r) {
		return nil
	}
	given := r.Header.Values("Content-Type")
	if len(given) == 0 && !HasBody(r) {
		return nil
	}
	if len(given) == 1 {
		media, params, err := mime.ParseMediaType(given[0])
		charset := strings.ToLower(params["charset"])
		if err == nil && media == "application/json" && (charset == "" || charset == "utf-8") {
			return nil
		}
	}
	if len(given) == 0 {
		return signalbox.Errorf(signalbox.CodeUnsupportedMedia, "the body has no content type; it must be application/json")
	}
	return signalbox.Errorf(signalbox.CodeUnsupportedMedia, "the content type must be application/json, not %q", Clip(strings.Join(given, ", ")))
}

// Until returns a context that also ends with life, so that long polls answer with what
// they have.
func Until(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(life, cancel)
	return ctx, func() {
		unlink()
		cancel()
	}
}
