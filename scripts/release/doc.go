// Command release builds the archives and packages of a release, for Linux and
// macOS, amd64 and arm64, from what is committed and nothing else:
//
//	go run ./scripts/release            builds HEAD into dist/
//	go run ./scripts/release -rev v1.2.0
//	go run ./scripts/release -check     builds twice, far apart, and compares byte by byte
//
// The bytes depend on the commit and the version of Go only: the source is
// taken from git, the paths are trimmed, the environment of the build is set
// here, and times are that of the commit (or SOURCE_DATE_EPOCH). Beside each
// archive lies a list of what is in it (CycloneDX). The same programs are packed
// for npm (npm.go), Debian (deb.go), containers (image.go) and Homebrew
// (formula.go). SHA256SUMS names all files.
package main
