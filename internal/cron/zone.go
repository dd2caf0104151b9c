package cron

import (
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a machine without zones must not refuse, or worse move, what another accepted
)

// zoneForm keeps the name away from the file system.
var zoneForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

// zones are those found before: finding one reads a file.
var zones sync.Map // of *time.Location by name

// Zone finds a time zone by its IANA name; "" is UTC. What depends on the
// machine (Local, localtime) or counts leap seconds (right/...) is refused.
// Errors are *Error.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if len(name) <= 64 && zoneForm.MatchString(name) && !ofMachine(name) {
		if z, err := time.LoadLocation(name); err == nil {
			zones.Store(name, z)
			return z, nil
		}
	}
	return nil, refuse("timezone", "%s is no time zone: write an IANA name such as Europe/Berlin, America/New_York or UTC", clip(name))
}

func ofMachine(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	switch strings.ToLower(folder) {
	case "local", "localtime", "posixrules", "posix", "right", "factory":
		return true
	}
	return false
}
