// Command release builds the archives and packages of a release, for Linux and
// macOS, amd64 and arm64, from committed files only:
//
//	go run ./scripts/release            builds HEAD into dist/
//	go run ./scripts/release -rev v1.2.0
//	go run ./scripts/release -check     builds twice in different environments and compares byte by byte
//
// The result depends only on the commit and the version of Go: the source is
// taken from git, the paths are trimmed, the environment of the build is set
// here, and all times are that of the commit (or SOURCE_DATE_EPOCH). Each archive
// has an SBOM (CycloneDX). The same programs are packed for npm (npm.go), Debian
// (deb.go), containers (image.go) and Homebrew (formula.go). SHA256SUMS lists all
// files.
package main
