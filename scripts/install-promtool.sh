#!/usr/bin/env bash
# Extracts promtool, which checks the alerts and recording rules, from Debian's
# package prometheus into a cache folder, and prints that folder. The package
# itself is not installed: it would start a server.
#
#   export PATH="$(scripts/install-promtool.sh):$PATH"
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache/promtool
if [ ! -x "$cache/promtool" ]; then
	mkdir -p "$cache"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	# Lists of packages that are too old, or not there at all, are the usual
	# reason for a failure; only root can renew them.
	(cd "$work" && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; }) >&2
	dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -x -C "$work" ./usr/bin/promtool
	mv "$work/usr/bin/promtool" "$cache/promtool"
fi
echo "$cache"
