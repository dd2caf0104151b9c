package gateway

import (
	"bytes"
	"encoding/json"
)

// KeyOf returns the key of a call in a queue with limits for each key. A key is a hash, because
// sessions and arguments may be secrets. "" is the key of calls without a key.
type KeyOf func(*Call) string

// KeyOfCaller makes the principal the key.
func KeyOfCaller(c *Call) string { return SessionKey(c.Caller.Principal) }

// KeyOfSession makes the session the key.
func KeyOfSession(c *Call) string { return SessionKey(c.Caller.Session) }

// KeyOfArgument makes the value of an argument the key, independent of how its
// JSON is formatted.
func KeyOfArgument(name string) KeyOf {
	return func(c *Call) string {
		var arguments map[string]any
		d := json.NewDecoder(bytes.NewReader(c.Arguments))
		d.UseNumber()
		if d.Decode(&arguments) != nil || arguments[name] == nil {
			return ""
		}
		text, err := json.Marshal(arguments[name]) // sorts the keys
		if err != nil {
			return ""
		}
		return SessionKey(string(text))
	}
}
