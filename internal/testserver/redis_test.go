//go:build unix

package testserver_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testserver"
)

func TestRedisStoresAreApart(t *testing.T) {
	if one, two := testserver.Redis(t), testserver.Redis(t); one == two {
		t.Fatalf("both are %s", one)
	}
}

func TestRedisComesBackWithWhatItHad(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{User: "box", Password: "s3cret", Settings: []string{"maxmemory 100mb"}})
	command := func(args ...string) string {
		t.Helper()
		got, err := s.Command(args...)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for how, stop := range map[string]func() error{"stop": s.Stop, "kill": s.Kill} {
		command("SET", how, "kept")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if got := command("GET", how); got != "kept" {
			t.Errorf("after %s: %q", how, got)
		}
	}
	if got := command("CONFIG", "GET", "maxmemory"); got != "maxmemory\n104857600" {
		t.Errorf("maxmemory: %q", got)
	}
}

func TestRedisGoesWithItsTest(t *testing.T) {
	var data string
	var pid int
	t.Run("inner", func(t *testing.T) {
		s := testserver.NewRedis(t, testserver.RedisOptions{})
		data, pid = s.Data, s.Pid()
	})
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder is there: %v", err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the server lives")
	}
}
