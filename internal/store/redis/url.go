package redis

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/redis/rueidis"
)

// DefaultPrefix is the hash tag of all keys where the URL names none.
const DefaultPrefix = "signalbox"

var prefixes = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// settings are what a URL may have in its query.
var settings = []string{"prefix", "db", "addr", "dial_timeout", "write_timeout", "skip_verify", "protocol", "client_name", "master_set"}

// parse reads the URL. No error repeats it: there is a password in it.
func (g *backend) parse(text string) error {
	const form = "the store's URL must be redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS, with ?prefix=NAME where several stores share a server"
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Opaque != "" {
		return refuse(form, nil)
	}
	query := u.Query()
	for key := range query {
		if u.Hostname() == "" && !knows(key) {
			return refuse(form, nil) // a ? in the password: what follows it is no name of a setting
		}
		if !knows(key) {
			return refuse("the store's URL has an unknown setting "+key+": there are "+strings.Join(settings, ", "), nil)
		}
	}
	prefix := DefaultPrefix
	if query.Has("prefix") {
		prefix = query.Get("prefix")
	}
	if !prefixes.MatchString(prefix) {
		return refuse("the prefix in the store's URL must be of letters, digits, dots, dashes and underscores, 64 at most", nil)
	}
	g.prefix = "{" + prefix + "}:"
	if g.option, err = rueidis.ParseURL(text); err != nil {
		return refuse(form+": its port, database number and settings must be readable", nil)
	}
	g.address = strings.Join(g.option.InitAddress, ", ")
	if g.option.ClientName == "" {
		g.option.ClientName = "signalbox"
	}
	if g.option.Dialer.Timeout == 0 {
		g.option.Dialer.Timeout = dialTime
	}
	if g.option.ConnWriteTimeout == 0 {
		g.option.ConnWriteTimeout = answerTime
	}
	return nil
}

func knows(key string) bool {
	for _, s := range settings {
		if s == key {
			return true
		}
	}
	return false
}
