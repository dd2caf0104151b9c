package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// REDIS_URL is the store only if none is configured: another program's server
// must not replace the configured one.
func TestRedisURLIsTheStoreWhereNoneIsGiven(t *testing.T) {
	const url = "redis://:s3cret@127.0.0.1:6379/0"
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(file, []byte("store: 'sqlite:'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		src  Sources
		env  map[string]string
		want string
	}{
		"nothing else":   {Sources{NoSearch: true}, nil, url},
		"a file":         {Sources{File: file}, nil, "sqlite:"},
		"the variable":   {Sources{NoSearch: true}, map[string]string{"SIGNALBOX_STORE": "memory:"}, "memory:"},
		"a flag":         {Sources{NoSearch: true, Flags: []Flag{{"--store", "store", []string{"memory:"}}}}, nil, "memory:"},
		"one that calls": {Sources{NoSearch: true, NoTools: true}, nil, "sqlite:"},
	} {
		c.src.Env = func(k string) (string, bool) {
			if k == "REDIS_URL" {
				return url, true
			}
			if k == "HOME" {
				return "/home/ada", true
			}
			v, ok := c.env[k]
			return v, ok
		}
		got, err := Load(c.src)
		if err != nil || got.Store != c.want {
			t.Errorf("%s: store %q, %v", name, got.Store, err)
		}
	}
}

func TestABadRedisURLIsShownToNobody(t *testing.T) {
	_, err := Load(Sources{NoSearch: true, Env: func(k string) (string, bool) {
		return map[string]string{"REDIS_URL": "unix:s3cret", "HOME": "/home/ada"}[k], k == "REDIS_URL" || k == "HOME"
	}})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "REDIS_URL") {
		t.Errorf("%v", err)
	}
}

func TestInstanceAndAdvertise(t *testing.T) {
	load := func(env map[string]string) (Config, error) {
		env["HOME"] = "/home/ada"
		return Load(Sources{NoSearch: true, Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }})
	}
	c, err := load(map[string]string{"SIGNALBOX_INSTANCE": "east-1", "SIGNALBOX_ADVERTISE": "http://east-1:8080"})
	if err != nil || c.Instance != "east-1" || c.Advertise != "http://east-1:8080" {
		t.Errorf("%q %q %v", c.Instance, c.Advertise, err)
	}
	for name, value := range map[string]string{"SIGNALBOX_INSTANCE": "east:1", "SIGNALBOX_ADVERTISE": "east-1:8080"} {
		if _, err := load(map[string]string{name: value}); err == nil {
			t.Errorf("%s=%s was taken", name, value)
		}
	}
}
