package config

import "path/filepath"

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

func dataFolder(home string) string { return filepath.Join(home, "data") }
