package serve

import (
	"log/slog"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// A user who has a token with few rights in the environment starts a director: the token
// must not get every right there.
func TestATokenThatADirectorMadeIsNotTheStaticOne(t *testing.T) {
	for _, test := range []struct {
		name, env, flag string
		want            string
		refused         bool
	}{
		{"static in the environment", "0123456789abcdef", "", "0123456789abcdef", false},
		{"made, in the environment", "sbxt_abc_secret", "", "", false},
		{"an agent's, in the environment", "sbxa_abc_secret", "", "", false},
		{"that of a run, in the environment", "sbxr_queue-a.1_mac", "", "", false},
		{"static as a flag is stronger", "sbxt_abc_secret", "0123456789abcdef", "0123456789abcdef", false},
		{"made, as a flag", "", "sbxt_abc_secret", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			src := config.Sources{NoSearch: true, Dir: t.TempDir(), Env: func(name string) (string, bool) {
				switch name {
				case "HOME":
					return t.TempDir(), true
				case TokenEnv:
					return test.env, test.env != ""
				}
				return "", false
			}}
			if test.flag != "" {
				src.Flags = []config.Flag{{Name: "--token", Key: "token", Values: []string{test.flag}}}
			}
			cfg, err := config.Load(src)
			if err != nil {
				t.Fatal(err)
			}
			err = StaticToken(&cfg, slog.New(slog.DiscardHandler))
			if (err != nil) != test.refused || !test.refused && cfg.Token != test.want {
				t.Fatalf("token %q, error %v", cfg.Token, err)
			}
		})
	}
}
