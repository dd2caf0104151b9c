package director

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// Limits of a body.
const (
	maxBodyBytes = 1 << 20
	maxJSONDepth = 32
)

// decode reads the JSON body of a request into the struct that into points
// to, strictly: every member must be a known field of the right type, once.
// A member that is null counts as left out. With optional the body may be
// missing.
func decode(w http.ResponseWriter, r *http.Request, into any, optional bool) error {
	return decodeUpTo(w, r, maxBodyBytes, into, optional)
}

// decodeCall is decode for a call of a tool: its arguments may be as long over
// HTTP as over MCP.
func decodeCall(w http.ResponseWriter, r *http.Request, into any) error {
	return decodeUpTo(w, r, maxMCPBytes, into, true)
}

func decodeUpTo(w http.ResponseWriter, r *http.Request, limit int64, into any, optional bool) error {
	data, err := readBody(w, r, limit)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		if optional {
			return nil
		}
		return signalbox.Errorf(signalbox.CodeValidation, "the body is empty; want a JSON object")
	}
	tree, err := parse(data)
	if err != nil {
		return err
	}
	return bind(reflect.ValueOf(into).Elem(), tree, "")
}

// readBody reads a body of at most that many bytes to its end.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLargeBody(limit) // unread: who sent Expect: 100-continue is not asked for it
	}
	data, err := arrived(w, r, limit)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, tooLargeBody(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body did not arrive within %s", bodyTimeout)
	case err != nil:
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body could not be read to its end")
	}
	// The deadline was for the body; what follows may be a long poll.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return data, nil
}

// smallBody is a length up to which memory is set aside at once, on the word of
// who sends it.
const smallBody = 4 << 10

func arrived(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	data := make([]byte, r.ContentLength) // more than that net/http does not hand out
	_, err := io.ReadFull(r.Body, data)
	return data, err
}

func tooLargeBody(limit int64) error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "the body is larger than %d bytes, the most that is allowed", limit)
}

// object is a JSON object, its members in the order in which they came.
type object struct {
	keys   []string
	values map[string]any
}

// parse reads a JSON text into nil, string, bool, json.Number, []any and
// *object. It refuses what encoding/json lets pass: invalid UTF-8, halves of
// surrogate pairs, repeated members, deep nesting.
func parse(data []byte) (any, error) {
	if tree, ok := parsePlain(data); ok {
		return tree, nil
	}
	return parseAny(data)
}

// parseAny is parse for every text, whatever is in it.
func parseAny(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body is not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, signalbox.Errorf(signalbox.CodeValidation, "the body is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
		}
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body is not valid JSON")
	}
	if halfSurrogate(data) {
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body contains half of a surrogate pair (\\ud800 to \\udfff), which is no character")
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	return value(dec, "", 1)
}

func value(dec *json.Decoder, path string, depth int) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body is not valid JSON")
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth > maxJSONDepth {
		return nil, signalbox.Invalid(path, "the body is nested too deep: at most %d levels are allowed", maxJSONDepth)
	}
	if delim == '[' {
		return array(dec, path, depth)
	}
	return members(dec, path, depth)
}

func array(dec *json.Decoder, path string, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := value(dec, element(path, len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, err
}

func members(dec *json.Decoder, path string, depth int) (any, error) {
	o := &object{values: map[string]any{}}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		field := join(path, key)
		if _, twice := o.values[key]; twice {
			return nil, signalbox.Invalid(clip(field), "%s is given twice", clip(field))
		}
		v, err := value(dec, field, depth+1)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, key)
		o.values[key] = v
	}
	_, err := dec.Token()
	return o, err
}

// maxPath bounds the path of a member, which is made for each of them and shown
// in errors, the beginning of it: below a name of a megabyte, a body of as many
// elements would have cost minutes.
const maxPath = 256

// join is the path of a member, element that of an element of an array.
func join(path, key string) string {
	switch {
	case len(path) > maxPath:
		return path
	case len(key) > maxPath:
		key = key[:maxPath+1]
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func element(path string, i int) string {
	if len(path) > maxPath {
		return path
	}
	return path + "[" + strconv.Itoa(i) + "]"
}

// halfSurrogate reports whether a valid JSON text escapes one half of a
// surrogate pair without the other. encoding/json would put U+FFFD there:
// the text stored would not be the text sent.
func halfSurrogate(data []byte) bool {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // what is escaped; valid JSON does not end here
		if data[i] != 'u' {
			continue
		}
		first := hex4(data[i+1:])
		i += 4
		if first < 0xd800 || first > 0xdfff {
			continue
		}
		if first > 0xdbff || len(data) < i+7 || data[i+1] != '\\' || data[i+2] != 'u' {
			return true
		}
		if second := hex4(data[i+3:]); second < 0xdc00 || second > 0xdfff {
			return true
		}
		i += 6
	}
	return false
}

func hex4(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0
	}
	return n
}
