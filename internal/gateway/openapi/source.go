package openapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Bounds of a description, so that a hostile one costs no more than a large
// one.
const (
	maxBytes = 8 << 20 // with all that it refers to
	maxFiles = 200
)

// source is where a description is read from, and what else may be read for it.
type source struct {
	ctx    context.Context
	where  *url.URL // of a description at a URL, else nil
	file   string   // else its absolute path
	client *rest.Client
	header http.Header
	read   map[string][]byte
	bytes  int
}

func newSource(ctx context.Context, c toolconf.OpenAPI) (*source, error) {
	s := &source{ctx: ctx, read: map[string][]byte{}}
	if !strings.Contains(c.Spec, "://") {
		s.file = filepath.Clean(c.Spec)
		return s, nil
	}
	u, err := url.Parse(c.Spec)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the spec has to be a file or a URL that begins with http:// or https://")
	}
	s.where = u
	s.client = rest.NewClient(rest.Reach{Named: []string{u.Hostname()}})
	s.header = http.Header{"Accept": {"application/json, application/yaml, text/yaml, */*;q=0.5"}}
	if base, err := url.Parse(c.BaseURL); err == nil && sameOrigin(base, u) {
		for name, value := range c.Headers { // they are meant for this host
			s.header.Set(name, value)
		}
	}
	return s, nil
}

func (s *source) close() {
	if s.client != nil {
		s.client.Close()
	}
}

// location is the description itself.
func (s *source) location() *url.URL {
	if s.where != nil {
		return s.where
	}
	return &url.URL{Path: filepath.ToSlash(s.file)}
}

// open reads the description or what it refers to, as JSON.
func (s *source) open(u *url.URL) ([]byte, error) {
	if s.where != nil {
		u = s.where.ResolveReference(u) // "/x" and "//host/x" as in any URL
	}
	key := u.String()
	if data, ok := s.read[key]; ok {
		return data, nil
	}
	if len(s.read) >= maxFiles {
		return nil, fmt.Errorf("it refers to more than %d files", maxFiles)
	}
	data, err := s.fetch(u)
	if err != nil {
		return nil, err
	}
	if s.bytes += len(data); s.bytes > maxBytes {
		return nil, errTooLarge
	}
	if data, err = toJSON(data); err != nil {
		if u.Path != s.location().Path {
			err = fmt.Errorf("%s: %w", filepath.Base(u.Path), err)
		}
		return nil, err
	}
	s.read[key] = data
	return data, nil
}

var errTooLarge = fmt.Errorf("it is larger than %d MiB with all that it refers to", maxBytes>>20)

func (s *source) fetch(u *url.URL) ([]byte, error) {
	switch {
	case s.where != nil && !sameOrigin(u, s.where):
		return nil, fmt.Errorf("it refers to %s, which is not read: references may lead to %s://%s only", place(u), s.where.Scheme, s.where.Host)
	case s.where != nil:
		return s.fetchURL(u)
	case u.Host != "" || u.Scheme != "" && u.Scheme != "file":
		return nil, fmt.Errorf("it refers to %s, which is not read: the references of a file may lead to files beside it only", place(u))
	}
	return s.readFile(filepath.FromSlash(u.Path))
}

func (s *source) fetchURL(u *url.URL) ([]byte, error) {
	a, err := s.client.Do(s.ctx, &rest.Request{Method: http.MethodGet, URL: u.String(), Header: s.header}, maxBytes)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("%s answered with status %d", place(u), a.Status)
	}
	return a.Body, nil
}

// readFile reads the description, or a file in its folder or below; links do
// not lead out of it.
func (s *source) readFile(path string) ([]byte, error) {
	if path == s.file {
		return readRegular(os.Open(path)) //nolint:gosec // the configuration names it
	}
	folder := filepath.Dir(s.file)
	inside, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("it refers to the file %s, which is not read: references may lead to files in %s only", rest.Cut(path, 200), folder)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	if info, err := root.Stat(inside); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", inside) // a pipe would be waited for
	}
	return readRegular(root.Open(inside))
}

func readRegular(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", f.Name())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = errTooLarge
	}
	return data, err
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// place is a URL without what may be secret in it.
func place(u *url.URL) string {
	p := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return rest.Cut(p.String(), 200)
}
