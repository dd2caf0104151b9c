package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/gateway/providertest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// TestProvider: a description at a URL, whose tools appear later, and one in
// a file.
func TestProvider(t *testing.T) {
	const description = head + `"paths":{
		"/find/{id}":{"get":{"operationId":"find","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}}],"responses":{"200":{"description":"d"}}}},
		"/hang":{"get":{"operationId":"hang","responses":{"200":{"description":"d"}}}}}}`
	for _, where := range []string{"url", "file"} {
		t.Run(where, func(t *testing.T) {
			providertest.Run(t, func(t *testing.T) providertest.Fixture {
				hangs := make(chan struct{}, 1)
				url, gone := providertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					switch r.URL.Path {
					case "/openapi.json":
						io.WriteString(w, description)
					case "/hang":
						hangs <- struct{}{}
						<-r.Context().Done()
					default:
						io.WriteString(w, `{"id":7}`)
					}
				}))
				c := toolconf.OpenAPI{Name: "s", Spec: url + "/openapi.json", BaseURL: url}
				if where == "file" {
					c = write(t, "openapi.json", description)
					c.BaseURL = url
				}
				return providertest.Fixture{
					Provider: openapi.New(c, openapi.Options{}), Answers: "rest__find", Arguments: json.RawMessage(`{"id":7}`),
					Hangs: "rest__hang", Hanging: providertest.Signal(hangs), Gone: gone,
				}
			})
		})
	}
}
