package conffile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// surrogate may be an unpaired surrogate: encoding/json replaces it by
// U+FFFD, and conffile reports an error.
var surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// FuzzJSON: the YAML parser reads JSON as encoding/json does, and refuses
// invalid JSON.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		"{\n\t\"a\": 1,\n\t\"b\":\t[1,\t2]\n}", `{"a":"x\/y"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\u00e9\b\f\n\r\t\"\\"}`, `{"a":"\ud800"}`, `{"a":010}`,
		`{"a":[1e3,1E400,-0,0.1e-7,1.0,1E+2,123456789012345678901234567890]}`, `{"a":"on","b":"no","c":null,"d":true,"e":"null","f":"1"}`, `{"a":1,"a":2}`,
		`{"":1}`, `[]`, `"text"`, `5`, `null`, `{"a":"x: y # z"}`, `{"a":"* & ! | > %"}`, `{"<<":{"a":1}}`, `{"null":1,"true":2,"1":3,"1.5":4}`, "{\"a\":1,\r\n\"b\":2}\r\n",
		"{\"a\":\"raw\u2028\u0085x\"}", `{"a":"\u0000"}`, "{\"a\"\n:\n1}", `{"a":"{}[],"}`, "{\"a\":\"tail\\\\\"}", "{\"a\":\"\x7f\"}", "{\"\\u0061\":1}", "{\"a\":\n\"---\"}",
		"{\n\"a\":1\n,\n\"b\":2\n}", `{"a":"\ud83d x \ude00"}`, "{\"a\":\"\xff\"}", `{"a":1,}`, `{"a":1 /* b */}`, `{"a":1} # b`, "\xef\xbb\xbf{}", "{\"a\":\ufeff1}", `{"a":"` + strings.Repeat("[", 2000) + `"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := conffile.Parse([]byte(text), conffile.JSON)
		data := bytes.TrimPrefix([]byte(text), []byte("\xef\xbb\xbf"))
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var want any
		valid := json.Valid(data) && dec.Decode(&want) == nil
		switch {
		case err != nil && valid && (surrogate.MatchString(text) || strings.Contains(err.Error(), "levels deep")):
		case (err == nil) != (valid || len(bytes.TrimSpace(data)) == 0):
			t.Fatalf("%q: %v", text, err)
		case err == nil && root != nil:
			if got := plain(root); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: %#v, want %#v", text, got, want)
			}
		}
	})
}

// plain converts a node to what encoding/json decodes.
func plain(n *conffile.Node) any {
	switch n.Form {
	case conffile.Text:
		return n.Text
	case conffile.Number:
		return json.Number(n.Text)
	case conffile.Boolean:
		return n.Text == "true"
	case conffile.List:
		out := []any{}
		for _, item := range n.Items {
			out = append(out, plain(item))
		}
		return out
	case conffile.Section:
		out := map[string]any{}
		for _, p := range n.Pairs {
			out[p.Key] = plain(p.Value)
		}
		return out
	}
	return nil
}

// randomJSON generates JSON with all the white space and characters that are
// special in YAML.
type randomJSON struct {
	*rand.Rand
	out strings.Builder
}

func (r *randomJSON) pick(of ...string) { r.out.WriteString(of[r.IntN(len(of))]) }

func (r *randomJSON) space() {
	for r.IntN(3) == 0 {
		r.pick(" ", "\t", "\n", "\r\n", "  ", "\n\t")
	}
}

func (r *randomJSON) text() {
	r.out.WriteByte('"')
	for r.IntN(4) != 0 {
		r.pick(
			"a", " ", "  ", ":", ": ", " #", "#", "-", "- ", "---", "...", "{", "}", "[", "]", ",", ", ", "*", "&", "!", "|", ">", "%", "@", "`", "'", "?", "? ", "<<",
			"null", "true", "0x1", "1e3", "~", "é", "😀", "\u2028", "\u0085", "\ufeff", "\xff", "\x7f",
			`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0000`, `\u00e9`, `\u2028`, `\ud83d\ude00`, `\u0022`, `\u005c`, `\ufeff`, "${A}", "$${",
		)
	}
	r.out.WriteByte('"')
}

func (r *randomJSON) value(depth int) {
	r.space()
	switch n := r.IntN(7); {
	case n == 0 && depth < 6:
		r.list('[', ']', func() { r.value(depth + 1) })
	case n < 4 && depth < 6:
		r.list('{', '}', func() { r.space(); r.text(); r.space(); r.out.WriteByte(':'); r.value(depth + 1) })
	case n == 4:
		r.pick("null", "true", "false", "0", "-0", "1", "-1", "1.5", "1e3", "1E-3", "1.0e+10", "123456789012345678901234567890", "18446744073709551616", "1e400", "0.1", "-0.0")
	default:
		r.text()
	}
	r.space()
}

func (r *randomJSON) list(open, end byte, item func()) {
	r.out.WriteByte(open)
	r.space()
	for i := 0; r.IntN(4) != 0; i++ {
		if i > 0 {
			r.out.WriteByte(',')
		}
		item()
	}
	if s := r.out.String(); strings.HasSuffix(s, ",") {
		item()
	}
	r.out.WriteByte(end)
}

// TestJSONIsReadAsJSON: white space, texts and numbers that mean something else
// in YAML mean in JSON what they mean to encoding/json.
func TestJSONIsReadAsJSON(t *testing.T) {
	for seed := range uint64(300) {
		r := randomJSON{Rand: rand.New(rand.NewPCG(seed, 1))}
		r.value(0)
		text := r.out.String()
		root, err := conffile.Parse([]byte(text), conffile.JSON)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := plain(root); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q:\n%#v\nwant\n%#v", text, got, want)
		}
	}
}

// TestBadJSON has what a parser for YAML would take, and must not.
func TestBadJSON(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"a\": 1,\n}":       "3: it is not JSON: invalid character '}' looking for beginning of object key string",
		"{\n// no\n\"a\": 1}":   "2: it is not JSON: invalid character '/' looking for beginning of object key string",
		"{\"a\": 1} # no":       "1: it is not JSON: invalid character '#' after top-level value",
		"{\"a\": yes}":          "1: it is not JSON: invalid character 'y' looking for beginning of value",
		"{\"a\": 010}":          "1: it is not JSON: invalid character '1' after object key:value pair",
		"{'a': 1}":              "1: it is not JSON: invalid character '\\'' looking for beginning of object key string",
		"{} {}":                 "1: it is not JSON: invalid character '{' after top-level value",
		"{\"a\": \"\x00\"}":     "1: it is not JSON: invalid character '\\x00' in string literal",
		"{\"a\": \"x\ty\"}":     "1: it is not JSON: invalid character '\\t' in string literal",
		"{\"a\":\n\"\\ud800\"}": "2: it is not JSON: not enough length for escaped UTF-16 surrogate pair",
		strings.Repeat("[\n", 102) + strings.Repeat("]", 102): "102: it is nested more than 100 levels deep",
		strings.Repeat("[", 1<<20):                            "1: it is not JSON: invalid character '[' exceeded max depth",
	} {
		_, err := conffile.Parse([]byte(text), conffile.JSON)
		bad, ok := errors.AsType[*conffile.Error](err)
		if !ok || fmt.Sprintf("%d: %s", bad.Line, bad.Text) != want {
			t.Errorf("%.40q: %+v, want %s", text, err, want)
		}
	}
	if root, err := conffile.Parse([]byte(`{"a": "`+strings.Repeat("[", 2000)+`"}`), conffile.JSON); err != nil || len(root.Pairs[0].Value.Text) != 2000 {
		t.Errorf("brackets in a text: %v", err)
	}
}
