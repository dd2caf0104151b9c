package gateway

import (
	"bytes"
	"encoding/json"
)

// KeyOf returns whose limits count for a call, in a queue that has them for each key. A key is a
// hash: a session is as secret as a password, and so may be an argument. "" is the key of calls
// without one.
type KeyOf func(*Call) string

// KeyOfCaller is the principal of a call.
func KeyOfCaller(c *Call) string { return SessionKey(c.Caller.Principal) }

// KeyOfSession is the session of a call.
func KeyOfSession(c *Call) string { return SessionKey(c.Caller.Session) }

// KeyOfArgument is the value of an argument, in whatever way its JSON is written.
func KeyOfArgument(name string) KeyOf {
	return func(c *Call) string {
		var arguments map[string]any
		d := json.NewDecoder(bytes.NewReader(c.Arguments))
		d.UseNumber()
		if d.Decode(&arguments) != nil || arguments[name] == nil {
			return ""
		}
		text, err := json.Marshal(arguments[name]) // with sorted keys
		if err != nil {
			return ""
		}
		return SessionKey(string(text))
	}
}
