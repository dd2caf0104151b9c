package model

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// ChatGPT is the backend for a codex with a ChatGPT login: it reports how much of the
// login's limits is used, and its model answers that the limit is reached.
type ChatGPT struct {
	*httptest.Server
	Used  atomic.Int64 // percent of the five-hour window; of the week 17 are used
	Asked atomic.Int64 // number of usage requests
	Reset time.Time    // of the five-hour window; the week's is a day later
}

// StartChatGPT starts a backend, whose reset is a full second within the next
// hour.
func StartChatGPT() *ChatGPT {
	c := &ChatGPT{Reset: time.Now().Add(47 * time.Minute).Truncate(time.Second)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/backend-api/wham/usage":
			c.Asked.Add(1)
			fmt.Fprintf(w, `{"plan_type":"plus","rate_limit":{"allowed":true,"limit_reached":false,
				"primary_window":{"used_percent":%d,"limit_window_seconds":18000,"reset_after_seconds":60,"reset_at":%d},
				"secondary_window":{"used_percent":17,"limit_window_seconds":604800,"reset_after_seconds":60,"reset_at":%d}}}`,
				c.Used.Load(), c.Reset.Unix(), c.Reset.Add(24*time.Hour).Unix())
		case r.URL.Path == "/v1/responses" && r.Method == http.MethodGet:
			w.WriteHeader(http.StatusUpgradeRequired) // no WebSocket
		case r.URL.Path == "/v1/responses":
			w.WriteHeader(http.StatusTooManyRequests) // without the headers for the windows
			fmt.Fprintf(w, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d}}`, c.Reset.Unix())
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	return c
}

// LogIn writes a login for the backend below a home, in codex's format.
func (c *ChatGPT) LogIn(home string) error {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().UTC()
	token := part(`{"alg":"none","typ":"JWT"}`) + "." + part(fmt.Sprintf(`{"email":"ada@example.org","exp":%d,"https://api.openai.com/auth":{"chatgpt_user_id":"u1","chatgpt_account_id":"w","chatgpt_plan_type":"plus"}}`,
		now.Add(24*time.Hour).Unix())) + "." + part("signed")
	auth := fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":"r","account_id":"w"},"last_refresh":%q}`, token, token, now.Format(time.RFC3339))
	config := fmt.Sprintf("model = \"scripted\"\nchatgpt_base_url = \"%s/backend-api\"\nopenai_base_url = \"%s/v1\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n", c.URL, c.URL)
	dir := filepath.Join(home, ".codex")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "auth.json"), []byte(auth), 0o600)
}
