package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// A text is parsed, or refused with the same error, as with encoding/json's
// token decoder.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"Fix issue #42","agent":"coder"}`, `{"state":"idle","current_tasks":[{"task_id":"a","slot":0,"fence":-12}],"x":null}`, ` [ ] `, `{"a":{"b":[true,false,{}]}}`,
		` { "a" : -1.5 , "b" : [ "}\\"" , { } ] ,"\u0063":"\\\\" , "d":null } `, `{"a":1,"a":2}`, `{"a":{"b":[0,{"c":1,"c":2}]}}`, `[[{"a":1,"a":2}]]`, `{"\u0061":1,"a":2}`, `{"a":1,"a":2,}`, "{\"a\":1,\"a\":2,\"b\":\"\\ud800\"}",
		`[01]`, `[-]`, `[-0]`, `[1.5]`, `[1e3]`, `[1E+03]`, `[1.]`, `[.5]`, `[1e]`, `[1e+]`, `[-1.25e-2]`, `[1,]`, `[,1]`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`,
		`"\u0041"`, `"é"`, "\"\x7f\"", "\"\x00\"", "\"\xff\"", `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\\ud800"`, `"\x"`, `"a\"b"`, `"\`, `"`, ``, ` `,
		`tru`, `nullx`, `{} {}`, `[truefalse]`,
		strings.Repeat("[", 32) + strings.Repeat("]", 32), strings.Repeat("[", 33) + strings.Repeat("]", 33), strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := strictjson.Parse(data)
		want, wrong := reference(data)
		if wrong != nil && (err == nil || err.Error() != wrong.Error()) || wrong == nil && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Fatalf("%q: %#v, %v\nbut token by token\n%#v, %v", data, got, err, want, wrong)
		}
		if _, ok := got.(*strictjson.Object); ok {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(data, &members); err != nil || !reflect.DeepEqual(strictjson.Members(data), members) {
				t.Fatalf("%q: %q, but encoding/json has %q, %v", data, strictjson.Members(data), members, err)
			}
		}
	})
}

// reference is Parse implemented with encoding/json's token decoder.
func reference(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, &strictjson.Error{What: "is not valid UTF-8"}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &strictjson.Error{What: fmt.Sprintf("is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())}
		}
		return nil, &strictjson.Error{What: "is not valid JSON"}
	}
	if halfSurrogate(data) {
		return nil, &strictjson.Error{What: "contains half of a surrogate pair (\\ud800 to \\udfff), which is not a character"}
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	return value(dec, "", 1)
}

func value(dec *json.Decoder, path string, depth int) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, &strictjson.Error{What: "is not valid JSON"}
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth > strictjson.MaxDepth {
		return nil, &strictjson.Error{Path: path, What: fmt.Sprintf("is nested too deep: at most %d levels are allowed", strictjson.MaxDepth)}
	}
	if delim == '[' {
		return array(dec, path, depth)
	}
	return members(dec, path, depth)
}

func array(dec *json.Decoder, path string, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := value(dec, strictjson.Element(path, len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, err
}

func members(dec *json.Decoder, path string, depth int) (any, error) {
	o := &strictjson.Object{Values: map[string]any{}}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		field := strictjson.Join(path, key)
		if _, twice := o.Values[key]; twice {
			return nil, &strictjson.Error{Path: field, What: strictjson.Duplicate}
		}
		v, err := value(dec, field, depth+1)
		if err != nil {
			return nil, err
		}
		o.Keys = append(o.Keys, key)
		o.Values[key] = v
	}
	_, err := dec.Token()
	return o, err
}

// halfSurrogate reports whether a valid JSON text has an unpaired escaped
// surrogate.
func halfSurrogate(data []byte) bool {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // the escaped character; valid JSON does not end here
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

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"prompt":"Fix issue #42: the parser \"forgets\" its state","agent":"coder","priority":3,"metadata":{"ticket":"A-1","tags":["x","y"]},"timeout_seconds":600,"session_id":"s-1"}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMembers(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"q":"a question of some length","n":10},"_meta":{"progressToken":3}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if len(strictjson.Members(body)) != 4 {
			b.Fatal("members are missing")
		}
	}
}
