package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway/providertest"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

func TestProvider(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		hangs := make(chan struct{}, 1)
		url, gone := providertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				hangs <- struct{}{}
				<-r.Context().Done()
				return
			}
			ok(w, r)
		}))
		p, err := rest.New([]toolconf.RestTool{{Name: "find", URL: url + "/find/${parameters.id}"}, {Name: "hang", URL: url + "/hang"}})
		if err != nil {
			t.Fatal(err)
		}
		return providertest.Fixture{
			Provider: p, Answers: "rest__find", Arguments: json.RawMessage(`{"id":7}`),
			Hangs: "rest__hang", Hanging: providertest.Signal(hangs), Gone: gone,
		}
	})
}
