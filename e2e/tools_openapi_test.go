package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// shop is a real HTTP API that stores what it is given.
type shop struct {
	mu     sync.Mutex
	orders map[string]json.RawMessage
	keys   []string // the X-Key of each request
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, r.Header.Get("X-Key"))
	w.Header().Set("Content-Type", "application/json")
	id := r.PathValue("id")
	order, there := s.orders[id]
	switch {
	case r.Method == http.MethodPut:
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.orders[id] = body
		w.WriteHeader(http.StatusCreated)
		w.Write(body)
	case !there:
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte(`{"problem": "no such order"}`))
	default:
		w.Write([]byte(`{"id": "` + id + `", "verbose": "` + r.URL.Query().Get("verbose") + `", "order": ` + string(order) + `}`))
	}
}

const shopDescription = `openapi: 3.1.0
info: {title: Shop, version: "1"}
servers: [{url: BASE}]
paths:
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
    get:
      operationId: getOrder
      summary: One order
      parameters:
        - {name: verbose, in: query, schema: {type: boolean}}
      responses: {"200": {description: the order}}
    put:
      operationId: putOrder
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [item]
              properties:
                item: {type: string}
                price: {type: [number, "null"]}
      responses: {"201": {description: stored}}
`

// The operations of a described API are tools, however they are called: over
// MCP, with curl, with the command line.
func TestADescribedAPIByAllWays(t *testing.T) {
	b := newBox(t)
	s := &shop{orders: map[string]json.RawMessage{}}
	mux := http.NewServeMux()
	mux.Handle("/v2/orders/{id}", s)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	b.file("shop/openapi.yaml", strings.Replace(shopDescription, "BASE", srv.URL+"/v2", 1), 0o600)
	b.vars["SHOP_KEY"] = "key-of-the-shop"
	b.file("work/signalbox.yaml", `
queues: {default: {concurrent: 64}, shop: {concurrent: 1}}
openapiSpecs:
  shop: {spec: ../shop/openapi.yaml, headers: {X-Key: "${SHOP_KEY}"}, queue: shop, toolNamePrefix: shop}
restTools:
  order:
    url: `+srv.URL+`/v2/orders/${parameters.id}
    headers: {X-Key: "${SHOP_KEY}"}
    parametersSchema: {type: object, properties: {id: {type: string}}, required: [id]}
    queue: shop
`, 0o600)
	b.want(0, "trust")
	d := b.up("--agents", "none")
	b.toolsReady(d.url, "shop")

	c := b.over(d.url, modernEra)
	if said := c.says("rest__shop_putOrder", object{"id": "a/b", "item": "signal lamp", "price": nil}); !strings.Contains(said, "signal lamp") {
		t.Errorf("MCP: %s", said)
	}
	curl, err := exec.Command("curl", "-sS", "-X", "POST", "-H", "Content-Type: application/json", "-H", "Authorization: Bearer "+b.token(),
		"-d", `{"arguments": {"id": "a/b", "verbose": true}}`, d.url+"/api/tools/rest__shop_getOrder/call").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := parse[api.ToolResult](t, string(curl))
	if want := `{"id":"a/b","verbose":"true","order":{"item":"signal lamp","price":null}}`; got.IsError || string(got.StructuredContent) != want {
		t.Errorf("curl: %s", curl)
	}
	if said := b.want(0, "tools", "call", "rest__order", `{"id": "a/b"}`).out; !strings.Contains(said, "signal lamp") {
		t.Errorf("command line: %s", said)
	}
	// A refusal of the API is the tool's failure, with the API's message; invalid
	// arguments are never sent.
	if said := b.want(10, "tools", "call", "rest__shop_getOrder", `{"id": "none"}`); !strings.Contains(said.out, "no such order") || !strings.Contains(said.out, "404") {
		t.Errorf("%+v", said)
	}
	before := len(s.keys)
	b.want(2, "tools", "call", "rest__shop_putOrder", `{"id": "x", "price": 1}`)
	for _, key := range s.keys {
		if key != "key-of-the-shop" {
			t.Errorf("the API saw the key %q", key)
		}
	}
	if len(s.keys) != before {
		t.Errorf("%d requests of a call that does not fit", len(s.keys)-before)
	}
	if strings.Contains(d.err.text()+string(curl), "key-of-the-shop") {
		t.Errorf("the key is shown")
	}
	b.nothingHeld(d.url)
}
