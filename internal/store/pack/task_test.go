package pack

import (
	"reflect"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// filled returns a value in which every field is set to a distinct value.
func filled(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	for i := range v.NumField() {
		*n++
		f := v.Field(i)
		switch f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.UnixMilli(int64(*n)).UTC()))
			continue
		case signalbox.State:
			f.SetString(string(signalbox.Working))
			continue
		case *signalbox.Parking, *signalbox.Landing:
			f.Set(reflect.New(f.Type().Elem()))
			filled(t, f.Elem(), n)
			continue
		case *[]signalbox.Requeue:
			f.Set(reflect.ValueOf(&[]signalbox.Requeue{
				{Kind: signalbox.EventBusy, Agent: "a", ClaimedAt: time.UnixMilli(1).UTC(), At: time.UnixMilli(2).UTC(), Message: "busy"}, {},
			}))
			continue
		case *[]signalbox.Need:
			f.Set(reflect.ValueOf(&[]signalbox.Need{{Resource: "db", N: 2}, {}}))
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			filled(t, f, n)
		case reflect.String:
			f.SetString("\xff" + string(rune('a'+*n)))
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(-*n))
		case reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("a task has a field of kind %s: pack it, and fill it here", f.Kind())
		}
	}
}

// A new field of a task that is not packed would be lost silently.
func TestEveryFieldOfATaskIsPacked(t *testing.T) {
	var task signalbox.Task
	n := 0
	filled(t, reflect.ValueOf(&task).Elem(), &n)
	for _, want := range []signalbox.Task{task, {State: signalbox.Pending}, {State: signalbox.Timeout, HasEnv: true}} {
		row := Task([]byte("before"), &want)
		got, err := ReadTask(row[len("before"):])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
	}
}

func FuzzReadTask(f *testing.F) {
	f.Add(Task(nil, &signalbox.Task{ID: "queue-1", State: signalbox.Pending, CreatedAt: time.UnixMilli(7)}))
	f.Add(Task(nil, &signalbox.Task{ID: "queue-2", State: signalbox.Parked, Parking: &signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateAccount, Name: "max"}, Count: 2}}))
	f.Add([]byte{})
	f.Add([]byte{1, 2, 2, 20})
	f.Fuzz(func(t *testing.T, row []byte) {
		task, err := ReadTask(row)
		if err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeStoreCorrupt {
				t.Fatalf("got %v", err)
			}
			return
		}
		if again, err := ReadTask(Task(nil, &task)); err != nil || !reflect.DeepEqual(again, task) {
			t.Fatalf("got %+v (%v), want %+v", again, err, task)
		}
	})
}
