package rest

import (
	"encoding/json"
	"testing"

	"github.com/signalbox-ai/signalbox"
)

// FuzzSchema: a tool's schema is either refused, or its check of arguments
// always ends, reports mistakes as the caller's, and never accepts a call
// without a required argument.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"$ref":"#"}`, `{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"type":"array"}`, `[]`, ``, `{"required":"a"}`,
		`{"properties":{"a":{"pattern":"(?=a)"}}}`, `{"additionalProperties":false}`, `{"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"}]}}}`, `{"properties":{"a":{"default":1}}}`, `{"type":null}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`,
	} {
		f.Add([]byte(s), []byte(`{"a":1}`))
	}
	f.Fuzz(func(t *testing.T, schema, raw []byte) {
		s, err := ParseSchema(schema)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("a refusal without a message")
			}
			return
		}
		args, err := s.Arguments(raw)
		if err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeValidation || len(err.Error()) > 4000+len(raw) {
				t.Fatalf("%s with %s: %v", schema, raw, err)
			}
			return
		}
		for _, name := range s.required {
			if _, ok := args[name]; !ok {
				t.Fatalf("%s requires %q, and %s was taken", schema, name, raw)
			}
		}
		if _, err := json.Marshal(s.withDefaults(args)); err != nil {
			t.Fatalf("%s with %s: %v", schema, raw, err)
		}
	})
}
