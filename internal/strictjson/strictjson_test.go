package strictjson_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// What is read in one pass is read the same the long way.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"Fix issue #42","agent":"coder"}`, `{"state":"idle","current_tasks":[{"task_id":"a","slot":0,"fence":-12}],"x":null}`, ` [ ] `, `{"a":{"b":[true,false,{}]}}`,
		`{"a":1,"a":2}`, `[01]`, `[-]`, `[-0]`, `[1.5]`, `[1e3]`, `[1,]`, `{"a":1,}`, `{,}`, `{"a"}`, `"\u0041"`, `"é"`, "\"\x7f\"", "\"\x00\"", `tru`, `nullx`, `{} {}`,
		strings.Repeat("[", 32) + strings.Repeat("]", 32), strings.Repeat("[", 33) + strings.Repeat("]", 33), strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok, want, err := strictjson.ParseBoth(data)
		if ok && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Fatalf("%q: %#v\nbut the long way has\n%#v, %v", data, got, want, err)
		}
	})
}

// What comes all the time takes the short way.
func TestHeartbeatsArePlain(t *testing.T) {
	data, err := json.Marshal(api.Heartbeat{State: "working", URL: "http://127.0.0.1:9000", CurrentTasks: []api.AgentCurrentTask{{ID: "task-1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, _, err := strictjson.ParseBoth(data); !ok {
		t.Errorf("%s is not plain, %v", data, err)
	}
}
