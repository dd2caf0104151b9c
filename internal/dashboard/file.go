package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// file is a served file. It is compressed at the first request that accepts gzip:
// compressing all files would take longer than the rest of a director's start.
type file struct {
	media string
	plain body
	gzip  func() body // no bytes if it would not be smaller
}

type body struct {
	bytes []byte
	etag  string
}

func newFile(media string, content []byte) *file {
	sum := sha256.Sum256(content)
	tag := hex.EncodeToString(sum[:12])
	return &file{
		media: media,
		plain: body{content, `"` + tag + `"`},
		gzip: sync.OnceValue(func() body {
			packed := compress(content)
			if len(packed) >= len(content) {
				return body{}
			}
			return body{packed, `"` + tag + `-gz"`}
		}),
	}
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(content)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return content // cannot happen with a buffer; served uncompressed
	}
	return b.Bytes()
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Add("Vary", "Accept-Encoding")
	b := f.plain
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		if packed := f.gzip(); packed.bytes != nil {
			b = packed
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", b.etag)
	if knows(r.Header.Get("If-None-Match"), b.etag) {
		h.Del("Content-Type")
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(b.bytes)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		w.Write(b.bytes) // an error means that the client is gone
	}
}

// takesGzip reports whether Accept-Encoding has gzip or *, with a weight other
// than 0.
func takesGzip(accept string) bool {
	all := false
	for _, part := range strings.Split(accept, ",") {
		name, weight, weighted := strings.Cut(strings.ToLower(strings.ReplaceAll(part, " ", "")), ";q=")
		q, err := strconv.ParseFloat(weight, 64)
		wanted := !weighted || (err == nil && q > 0)
		switch name {
		case "gzip":
			return wanted
		case "*":
			all = wanted
		}
	}
	return all
}

// knows reports whether If-None-Match has a tag.
func knows(header, tag string) bool {
	for _, t := range strings.Split(header, ",") {
		t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
		if t == tag || t == "*" {
			return true
		}
	}
	return false
}
