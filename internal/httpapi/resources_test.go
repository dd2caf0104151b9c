package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// Tasks keep the resources that they need, and the holders are shown.
func TestResourcesAreHeldAndShown(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) {
		o.Engine.Resources = map[string]signalbox.Resource{"db": {Capacity: 2}, "port": {Capacity: 1, Values: []string{"3001"}}}
	})
	a := b.AddAgent("coder", 3)
	first := b.Submit(`{"prompt":"p","needs":{"db":2}}`).QueueID
	second := b.Submit(`{"prompt":"p","needs":{"port":1,"db":1}}`).QueueID
	b.Run(a)
	var all api.Resources
	b.Do("GET", "/api/resources", "").Want(t, 200, &all)
	if len(all.Resources) != 2 {
		t.Fatalf("%+v", all)
	}
	db, port := all.Resources[0], all.Resources[1]
	if db.Name != "db" || db.Free != 0 || db.Capacity != 2 || db.Waiting != 1 || len(db.Holders) != 1 || db.Holders[0].QueueID != first || db.Holders[0].N != 2 || db.Holders[0].Since == nil {
		t.Errorf("%+v", db)
	}
	if port.Name != "port" || port.Free != 1 || port.Waiting != 1 || len(port.Holders) != 0 {
		t.Errorf("%+v", port)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+second, "").Want(t, 200, &task)
	if len(task.Needs) != 2 || task.Needs["port"] != 1 {
		t.Errorf("%+v", task.Needs)
	}
	for _, bad := range []string{`{"gpu":1}`, `{"db":3}`, `{"db":0}`, `{"db":-1}`, `{"db":1.5}`, `{"db":"1"}`, `{"land:a:main":1}`, `["db"]`, `5`} {
		b.Do("POST", "/api/queue/task", `{"prompt":"p","needs":`+bad+`}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
}
