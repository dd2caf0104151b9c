package verbs

import (
	"reflect"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// A new field of a row that is not packed would be lost silently.
func TestEveryFieldIsPacked(t *testing.T) {
	packed(t, directorBody, readDirector)
	packed(t, holdingBody, readHolding)
	packed(t, heardBody, readHeard)
	packed(t, ticketBody, readTicket)
}

func packed[T any](t *testing.T, pack func(*T) []byte, read func(id string, body []byte) (T, error)) {
	t.Helper()
	var want T
	v := reflect.ValueOf(&want).Elem()
	for n := range v.NumField() {
		switch f := v.Field(n); f.Interface().(type) {
		case string:
			f.SetString("\xff" + string(rune('a'+n)))
		case int64:
			f.SetInt(int64(-n - 1))
		case bool:
			f.SetBool(true)
		case time.Time:
			f.Set(reflect.ValueOf(time.UnixMilli(int64(n) + 1).UTC()))
		case []byte:
			f.SetBytes([]byte{0xff, byte(n)})
		default:
			t.Fatalf("%T has a field of type %s: pack it, and fill it here", want, f.Type())
		}
	}
	id := v.FieldByName("ID")
	if !id.IsValid() {
		id = v.FieldByName("Agent")
	}
	got, err := read(id.String(), pack(&want))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if _, err := read("x", []byte{1, 0x80}); err == nil {
		t.Errorf("a damaged row of %T is read", want)
	}
}

// Older versions stored limits without the time since which they are closed.
func TestLimitsOfOlderVersion(t *testing.T) {
	at := time.UnixMilli(7).UTC()
	old := pack.New(0)
	old.Int(1)
	old.Texts("k", "429")
	old.Int(5)
	old.Times(at)
	want := []store.ToolLimit{{Key: "k", Why: "429", Full: 5, Closed: at}}
	if got, err := readLimits("q", old.Packed()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	want[0].Since = at
	if got, err := readLimits("q", limitsBody(want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
