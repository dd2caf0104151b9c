// Package config reads what a person set: the configuration file, the
// environment and the flags, each stronger than the one before. The result
// is one [Config] with typed fields, checked as far as one value or a few
// can be checked without looking at the world.
//
// The file is ./signalbox.yaml, else config.yaml in the home folder of
// Signalbox (see [Home]), unless a flag names one. It is decoded strictly:
// keys that do not exist and values of another type are errors. Values may
// hold ${NAME}, which stands for an environment variable; $${ stands for ${.
//
// A person who mends a configuration wants to see all that is wrong with it:
// [Load] goes through everything and returns [Problems], each with the place
// that it comes from.
package config
