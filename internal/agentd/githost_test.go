package agentd_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// gitHost serves the bare repositories in a folder over HTTP, including pushes, and their
// large files through the API of git-lfs.
type gitHost struct {
	url     string
	handler http.Handler

	mu    sync.Mutex
	calls []string          // "GET /shop.git/info/refs?service=git-upload-pack"
	large map[string][]byte // by hash
}

func hostGit(t *testing.T, dir string) *gitHost {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, serr := os.Stat(backend); err != nil || serr != nil {
		t.Skip("git has no http-backend here")
	}
	h := &gitHost{large: map[string][]byte{}, handler: &cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
	}}}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	h.url = srv.URL
	return h
}

func (h *gitHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.mu.Lock()
	h.calls = append(h.calls, req.Method+" "+req.URL.RequestURI())
	h.mu.Unlock()
	_, file, isFile := strings.Cut(req.URL.Path, "/lfs-objects/")
	switch {
	case strings.HasSuffix(req.URL.Path, "/info/lfs/objects/batch"):
		h.batch(w, req)
	case strings.Contains(req.URL.Path, "/info/lfs/"):
		http.NotFound(w, req) // git-lfs works without the lock API
	case isFile && req.Method == http.MethodPut:
		b, err := io.ReadAll(req.Body)
		if sum := sha256.Sum256(b); err != nil || hex.EncodeToString(sum[:]) != file {
			http.Error(w, "no such content", http.StatusUnprocessableEntity)
			return
		}
		h.mu.Lock()
		h.large[file] = b
		h.mu.Unlock()
	case isFile:
		h.mu.Lock()
		b := h.large[file]
		h.mu.Unlock()
		_, _ = w.Write(b)
	default:
		h.handler.ServeHTTP(w, req)
	}
}

// batch answers with the URLs for upload or download of large files.
func (h *gitHost) batch(w http.ResponseWriter, req *http.Request) {
	type action struct {
		Href string `json:"href"`
	}
	type object struct {
		OID     string            `json:"oid"`
		Size    int64             `json:"size"`
		Actions map[string]action `json:"actions,omitempty"`
		Error   map[string]any    `json:"error,omitempty"`
	}
	var said struct {
		Operation string
		Objects   []object
	}
	if err := json.NewDecoder(req.Body).Decode(&said); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	for i, o := range said.Objects {
		_, has := h.large[o.OID]
		switch {
		case has == (said.Operation == "download"):
			said.Objects[i].Actions = map[string]action{said.Operation: {h.url + "/lfs-objects/" + o.OID}}
		case !has:
			said.Objects[i].Error = map[string]any{"code": 404, "message": "not here"}
		}
	}
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": said.Objects})
}

// asked counts the requests since the last call of forget that contain a
// text.
func (h *gitHost) asked(text string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if strings.Contains(c, text) {
			n++
		}
	}
	return n
}

// forget resets the requests that asked counts.
func (h *gitHost) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = nil
}

// content returns the content of a large file at the host; "" if it has none.
func (h *gitHost) content(text string) string {
	sum := sha256.Sum256([]byte(text))
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.large[hex.EncodeToString(sum[:])])
}
