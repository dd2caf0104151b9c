// Package testserver starts the servers that tests and benchmarks need, each in
// a temporary folder on a free port, and stops them by PID: PostgreSQL and
// Redis from Debian's packages (scripts/setup.sh). SIGNALBOX_TEST_SERVERS sets
// the parent of their folders, instead of the system's folder for temporary
// files: make test puts them in memory, benchmarks do not.
package testserver
