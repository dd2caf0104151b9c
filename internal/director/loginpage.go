package director

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
)

var (
	//go:embed page/login.html
	loginHTML string
	//go:embed page/login.css
	loginCSS string
	//go:embed page/login.js
	loginJS string
)

// The page is one answer, its style in it; the policy names that style by its
// hash and allows nothing else inline. A form that the script did not take
// over sends nothing anywhere.
var (
	loginPageBody   = strings.Replace(loginHTML, "STYLE", loginCSS, 1)
	loginPagePolicy = "default-src 'none'; script-src 'self'; style-src 'sha256-" + hashOf(loginCSS) +
		"'; img-src data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// loginPage is GET /login.
func (d *Director) loginPage(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Security-Policy", loginPagePolicy)
	return page(w, "text/html; charset=utf-8", loginPageBody)
}

// loginScript is GET /login.js.
func (d *Director) loginScript(w http.ResponseWriter, _ *http.Request) error {
	return page(w, "text/javascript; charset=utf-8", loginJS)
}

func page(w http.ResponseWriter, media, body string) error {
	w.Header().Set("Content-Type", media)
	extendWrite(w)
	w.Write([]byte(body)) // an error here is the caller's: it went away
	return nil
}
