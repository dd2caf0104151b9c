// Package testserver starts the servers that tests and benchmarks need, each
// in a temporary folder, on a free port, and stops them by pid: PostgreSQL and
// Redis from Debian's packages (scripts/setup.sh).
package testserver
