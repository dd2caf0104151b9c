package config

import (
	"path/filepath"
	"strings"
)

// HomeEnv names the environment variable that puts the home folder of
// Signalbox elsewhere.
const HomeEnv = "SIGNALBOX_HOME"

// Home returns the home folder of Signalbox: $SIGNALBOX_HOME, else
// .signalbox in the user's home; "" where neither is known. env is a lookup
// such as os.LookupEnv.
func Home(env func(string) (string, bool)) string {
	if home, ok := env(HomeEnv); ok && home != "" {
		return home
	}
	if home := userHome(env); home != "" {
		return filepath.Join(home, ".signalbox")
	}
	return ""
}

func userHome(env func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, ok := env(name); ok && home != "" {
			return home
		}
	}
	return ""
}

// DirectorFile is where a running director says how to reach it
// (api.DirectorFile), in a home folder of Signalbox.
func DirectorFile(home string) string { return filepath.Join(home, "director.json") }

// FurtherDirectorFile is the same for the director at a URL, so that several
// can run with one home folder.
func FurtherDirectorFile(home, url string) string {
	_, addr, _ := strings.Cut(strings.ToLower(strings.TrimRight(url, "/")), "://")
	return filepath.Join(home, "directors", strings.NewReplacer(":", "_", "/", "_").Replace(addr)+".json")
}

// TokenFile holds the token of the owner of this home folder: the static token
// of the directors that run with it, unless another one is given.
func TokenFile(home string) string { return filepath.Join(home, "token") }

// SchedulerFile is where a running scheduler that stands alone says how to
// reach it, as a director does in DirectorFile.
func SchedulerFile(home string) string { return filepath.Join(home, "scheduler.json") }

// SchedulerTokenFile is the same for a scheduler that stands alone.
func SchedulerTokenFile(home string) string { return filepath.Join(home, "scheduler-token") }

func dataFolder(home string) string { return filepath.Join(home, "data") }
