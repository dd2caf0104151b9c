package e2e_test

import (
	"strings"
	"testing"
)

// All mistakes in a configuration of tools are reported at once, with file,
// line and key, before anything starts.
func TestWrongToolsAreRefused(t *testing.T) {
	b := newBox(t)
	b.file("work/bad.yaml", `queues:
  search: {concurrent: 0}
  search: {concurrent: 2}
maxConcurrentTools: 3
mcpServers:
  one: {command: "true", queue: nowhere}
  two: {url: "http://127.0.0.1:1/mcp", toolQueues: {x: elsewhere}}
  three: {command: "true", env: {KEY: "${NOT_SET_ANYWHERE}"}}
restTools:
  weather: {url: "http://127.0.0.1:1/", queue: missing, headers: {X-Key: top-secret-value}, method: FLY}
`, 0o600)
	b.file("work/bad.json", `{"mcpServers": {"twice": {"command": "a"},
 "twice": {"command": "b"}}}`, 0o600)
	want := []string{
		"bad.yaml:1: queues: there is no queue named default",
		"bad.yaml:2: queues.search.concurrent: ",
		"bad.yaml:3: queues.search: it stands twice",
		"bad.yaml:4: maxConcurrentTools: this key is retired",
		"bad.yaml:6: mcpServers.one.queue: there is no tool queue named nowhere",
		"bad.yaml:7: mcpServers.two.toolQueues.x: there is no tool queue named elsewhere",
		"bad.yaml:8: mcpServers.three.env.KEY: ",
		"bad.yaml:10: restTools.weather.method: ",
		"bad.yaml:10: restTools.weather.queue: there is no tool queue named missing",
		"bad.json:2: mcpServers.twice: it stands twice",
	}
	for _, role := range [][]string{
		b.server("director", nil), b.server("up", nil), {"gateway", "--addr", "127.0.0.1:0"}, {"gateway", "--stdio"},
	} {
		got := b.want(2, append(role, "--tools", "bad.yaml", "--tools", "bad.json")...)
		for _, word := range want {
			if !strings.Contains(got.err, "  "+word) && !strings.Contains(got.err, "/"+word) {
				t.Errorf("%s: no %q in\n%s", role[0], word, got.err)
			}
		}
		if got.out != "" || strings.Contains(got.err, "top-secret-value") {
			t.Errorf("%s: %q %s", role[0], got.out, got.err)
		}
	}
}

// An invalid description of tools is refused at the start, and its references
// are not requested.
func TestWrongDescriptionsAreRefused(t *testing.T) {
	b := newBox(t)
	b.file("outside.yaml", "secret: of the machine\n", 0o600)
	file := b.toolFile("work/tools.json", object{"openapiSpecs": object{"shop": object{"spec": "shop.yaml"}}})
	for name, c := range map[string]struct{ text, says string }{
		"no YAML":             {"openapi: 3.1.0\n\tinfo: [", "shop.yaml"},
		"not OpenAPI":         {"hello: world\n", "not an OpenAPI description"},
		"an older version":    {`{"swagger": "2.0", "info": {"title": "x", "version": "1"}, "paths": {}}`, "2.0"},
		"no paths":            {"openapi: 3.1.0\ninfo: {title: x, version: '1'}\npaths: 7\n", "paths"},
		"a metadata address":  {"openapi: 3.1.0\ninfo: {title: x, version: '1'}\npaths: {/a: {$ref: 'http://169.254.169.254/latest#/a'}}\n", "169.254.169.254"},
		"a file elsewhere":    {"openapi: 3.1.0\ninfo: {title: x, version: '1'}\npaths: {/a: {$ref: '../outside.yaml#/a'}}\n", "outside.yaml"},
		"a reference nowhere": {"openapi: 3.1.0\ninfo: {title: x, version: '1'}\npaths: {/a: {get: {responses: {'200': {$ref: '#/components/responses/none'}}}}}\n", "none"},
	} {
		b.file("work/shop.yaml", c.text, 0o600)
		got := b.cli(append(b.server("director", nil), "--tools", file)...)
		if got.code != 2 || !strings.Contains(got.err, c.says) || !strings.Contains(got.err, "tools.json:3: openapiSpecs.shop: ") {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.err)
		}
		if got.out != "" || strings.Contains(got.err, "of the machine") {
			t.Errorf("%s: %q %s", name, got.out, got.err)
		}
	}
	b.want(2, "gateway", "--addr", "127.0.0.1:0", "--tools", file)
}
