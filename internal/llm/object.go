package llm

import (
	"encoding/json"
	"strings"
)

// ObjectArguments are the arguments of an earlier call as an endpoint takes
// them back: a JSON object. Those that are one stay byte for byte. The model
// sees its own words again where they are none, and has been told so.
func ObjectArguments(raw string) string {
	if strings.TrimSpace(raw) == "" {
		return "{}"
	}
	if checkObject(raw) == nil {
		return raw
	}
	b, err := json.Marshal(map[string]string{"invalid_arguments": raw})
	if err != nil {
		return "{}"
	}
	return string(b)
}
