package httpio

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// maxBodyBytes is the maximum size of a body.
const maxBodyBytes = 1 << 20

// MaxCallBytes is the maximum size of a message to the MCP server, and of a tool call
// over HTTP: arguments may have whole files.
const MaxCallBytes = 4 << 20

// Decode reads the JSON body of a request into the struct that into points to. It is
// strict: every member must be a known field with the right type, and occur once. A
// null member counts as left out. With optional the body may be missing.
func Decode(w http.ResponseWriter, r *http.Request, into any, optional bool) error {
	return DecodeUpTo(w, r, maxBodyBytes, into, optional)
}

// DecodeCall is Decode for a tool call, with the limit of MCP for its arguments.
func DecodeCall(w http.ResponseWriter, r *http.Request, into any) error {
	return DecodeUpTo(w, r, MaxCallBytes, into, true)
}

// DecodeUpTo is Decode for a body of at most limit bytes.
func DecodeUpTo(w http.ResponseWriter, r *http.Request, limit int64, into any, optional bool) error {
	data, err := ReadBody(w, r, limit)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		if optional {
			return nil
		}
		return signalbox.Errorf(signalbox.CodeValidation, "the body is empty; want a JSON object")
	}
	tree, err := Parse(data)
	if err != nil {
		return err
	}
	return Bind(reflect.ValueOf(into).Elem(), tree, "")
}

// ReadBody reads a body of at most limit bytes to its end.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLargeBody(limit) // without reading it: a client with Expect: 100-continue need not send it
	}
	data, err := arrived(w, r, limit)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, tooLargeBody(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body did not arrive within %s", BodyTimeout)
	case err != nil:
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body could not be read to its end")
	}
	// The deadline was for the body only: a long poll may follow.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return data, nil
}

// smallBody is the length up to which Content-Length is trusted for an allocation.
const smallBody = 4 << 10

func arrived(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	data := make([]byte, r.ContentLength) // net/http returns no more than that
	_, err := io.ReadFull(r.Body, data)
	return data, err
}

func tooLargeBody(limit int64) error {
	return signalbox.Errorf(signalbox.CodeTooLarge, "the body is larger than %d bytes, the maximum", limit)
}

// Parse parses a JSON text into nil, string, bool, json.Number, []any and
// *strictjson.Object.
func Parse(data []byte) (any, error) {
	tree, err := strictjson.Parse(data)
	var wrong *strictjson.Error
	switch {
	case !errors.As(err, &wrong):
		return tree, err
	case wrong.Path == "":
		return nil, signalbox.Errorf(signalbox.CodeValidation, "the body %s", wrong.What)
	}
	return nil, signalbox.Invalid(Clip(wrong.Path), "%s %s", Clip(wrong.Path), wrong.What)
}

var (
	TimeType = reflect.TypeFor[time.Time]()
	RawType  = reflect.TypeFor[json.RawMessage]()
)

// Bind stores a parsed JSON value in v. Errors name the field and the rule.
func Bind(v reflect.Value, tree any, path string) error {
	if tree == nil && path != "" {
		return nil // null: left out
	}
	switch v.Type() {
	case TimeType:
		return bindTime(v, tree, path)
	case RawType:
		return bindRaw(v, tree, path)
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return Bind(v.Elem(), tree, path)
	case reflect.Struct:
		return bindStruct(v, tree, path)
	case reflect.Map:
		return bindMap(v, tree, path)
	case reflect.Slice:
		return bindSlice(v, tree, path)
	case reflect.Int, reflect.Int64:
		return bindInt(v, tree, path)
	case reflect.Float64:
		return bindFloat(v, tree, path)
	case reflect.String:
		s, ok := tree.(string)
		v.SetString(s)
		return want(ok, path, "a string", tree)
	case reflect.Bool:
		b, ok := tree.(bool)
		v.SetBool(b)
		return want(ok, path, "true or false", tree)
	}
	return signalbox.Errorf(signalbox.CodeInternal, "no way to read a %s", v.Type())
}

func want(ok bool, path, rule string, got any) error {
	if ok {
		return nil
	}
	if path == "" {
		return signalbox.Errorf(signalbox.CodeValidation, "the body must be %s, not %s", rule, kindOf(got))
	}
	return signalbox.Invalid(Clip(path), "%s must be %s, not %s", Clip(path), rule, kindOf(got))
}

func bindStruct(v reflect.Value, tree any, path string) error {
	o, ok := tree.(*strictjson.Object)
	if !ok {
		return want(false, path, "an object", tree)
	}
	fields := JSONFields(v.Type())
	for _, key := range o.Keys {
		i := slices.IndexFunc(fields, func(f JSONField) bool { return f.Name == key })
		field := strictjson.Join(path, key)
		if i < 0 {
			return unknownField(field, fields)
		}
		if err := Bind(v.FieldByIndex(fields[i].Field.Index), o.Values[key], field); err != nil {
			return err
		}
	}
	return nil
}

func unknownField(field string, fields []JSONField) error {
	field = Clip(field)
	hint := "it takes no fields"
	if len(fields) > 0 {
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.Name
		}
		hint = "known fields are " + strings.Join(names, ", ")
	}
	return &Refusal{Err: signalbox.Invalid(field, "%s is not a known field", field), Hint: hint}
}

func bindMap(v reflect.Value, tree any, path string) error {
	o, ok := tree.(*strictjson.Object)
	if !ok {
		return want(false, path, "an object", tree)
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(o.Keys)))
	for _, key := range o.Keys {
		elem := reflect.New(v.Type().Elem()).Elem()
		if o.Values[key] == nil {
			return want(false, strictjson.Join(path, key), "a string", nil)
		}
		if err := Bind(elem, o.Values[key], strictjson.Join(path, key)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key), elem)
	}
	return nil
}

func bindSlice(v reflect.Value, tree any, path string) error {
	list, ok := tree.([]any)
	if !ok {
		return want(false, path, "an array", tree)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, elem := range list {
		if err := Bind(v.Index(i), elem, strictjson.Element(path, i)); err != nil {
			return err
		}
	}
	return nil
}

func bindInt(v reflect.Value, tree any, path string) error {
	n, ok := tree.(json.Number)
	if !ok {
		return want(false, path, "a whole number", tree)
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v.OverflowInt(i) {
		return signalbox.Invalid(Clip(path), "%s must be a whole number in digits, not %s", Clip(path), Clip(n.String()))
	}
	v.SetInt(i)
	return nil
}

func bindTime(v reflect.Value, tree any, path string) error {
	s, ok := tree.(string)
	if !ok {
		return want(false, path, "a time such as 2026-01-31T10:00:00Z", tree)
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return signalbox.Invalid(Clip(path), "%s must be a time such as 2026-01-31T10:00:00Z, not %q", Clip(path), Clip(s))
	}
	v.Set(reflect.ValueOf(t))
	return nil
}

// JSONField is a field of a wire type in JSON.
type JSONField struct {
	Name     string
	Field    reflect.StructField
	Optional bool // omitempty
}

// JSONFields lists the fields of a struct type that have a JSON name, in order, including those of
// embedded structs.
func JSONFields(t reflect.Type) []JSONField {
	var fields []JSONField
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, JSONField{Name: name, Field: f, Optional: strings.Contains(opts, "omit")})
	}
	return fields
}

// bindRaw stores an object as JSON for another program: it keeps the order of the members
// and the form of the numbers.
func bindRaw(v reflect.Value, tree any, path string) error {
	o, ok := tree.(*strictjson.Object)
	if ok {
		v.SetBytes(appendJSON(nil, o))
	}
	return want(ok, path, "an object", tree)
}

func appendJSON(b []byte, tree any) []byte {
	switch t := tree.(type) {
	case *strictjson.Object:
		b = append(b, '{')
		for i, key := range t.Keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, key), ':')
			b = appendJSON(b, t.Values[key])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, elem := range t {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, elem)
		}
		return append(b, ']')
	}
	leaf, err := json.Marshal(tree) // text, a number, true, false or null
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, leaf...)
}

func bindFloat(v reflect.Value, tree any, path string) error {
	n, ok := tree.(json.Number)
	if !ok {
		return want(false, path, "a number", tree)
	}
	f, err := n.Float64()
	if err != nil {
		return signalbox.Invalid(Clip(path), "%s is out of range", Clip(path))
	}
	v.SetFloat(f)
	return nil
}
