// Package testserver starts the servers that tests and benchmarks need, each
// in a temporary folder, on a free port, and stops them by pid: PostgreSQL and
// Redis from Debian's packages (scripts/setup.sh). SIGNALBOX_TEST_SERVERS names
// the folder in which their folders are made, instead of the system's for
// temporary files: make test has them in memory, benchmarks do not.
package testserver
