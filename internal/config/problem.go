package config

import "github.com/signalbox-ai/signalbox/internal/conffile"

// Problem is one thing that is wrong with a configuration.
type Problem = conffile.Problem

// Problems are all the things that are wrong, in the order in which they
// were met.
type Problems = conffile.Problems
