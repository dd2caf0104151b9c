#!/usr/bin/env bash
# Installs missing programs that the tests need in addition to Go and git: Debian
# packages (as root, or with CI=true and sudo), and the coding CLIs and MCP
# servers (npm, into cache folders). If it has no right to install, it prints the
# command that would, and the tests that need these programs are skipped by name.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need gcc gcc # the race detector needs cgo
need node nodejs
need npm npm
need strace strace
need mkfs.ext4 e2fsprogs # a disk of its own, whose power is cut
need python3 python3
need sqlite3 sqlite3 # the guides in docs/ back a database up with it
need curl curl
need chromium chromium # what make bench drives, and without the next one also the tests of the pages and the Playwright MCP server
! grep -qsx ID=debian /etc/os-release || need chromium-headless-shell chromium-headless-shell
need groff groff-base # the manual pages
need git-lfs git-lfs
need bwrap bubblewrap  # the sandbox of command tools
# The store servers that several directors share. The tests start their own
# servers on free ports and in temporary folders; Debian's are not touched.
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || missing+=(postgresql)
command -v valkey-server >/dev/null 2>&1 || need redis-server redis-server

if [ ${#missing[@]} -gt 0 ]; then
	install="apt-get install -y --no-install-recommends ${missing[*]}"
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "setup: $install"
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
	elif [ "${CI:-}" = true ] && command -v sudo >/dev/null 2>&1; then
		echo "setup: sudo $install"
		sudo apt-get update -qq && sudo DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
	else
		echo "setup: missing ${missing[*]}; to run every test: sudo $install" >&2
	fi
fi

if ! command -v promtool >/dev/null 2>&1; then
	if ! command -v dpkg-deb >/dev/null 2>&1 || ! scripts/install-promtool.sh >/dev/null 2>&1; then
		echo "setup: no promtool (Debian's package prometheus has it): the alerts are checked by name alone" >&2
	fi
fi

if command -v npm >/dev/null 2>&1; then
	for what in install-agents install-npm-packages install-site-packages; do
		if ! "scripts/$what.sh" >/dev/null; then
			[ "${CI:-}" = true ] && exit 1
			echo "setup: $what did not succeed; the tests that need it are skipped" >&2
		fi
	done
else
	[ "${CI:-}" = true ] && { echo "setup: npm is missing" >&2; exit 1; }
	echo "setup: no npm: the tests of the real coding CLIs and MCP servers are skipped" >&2
fi
