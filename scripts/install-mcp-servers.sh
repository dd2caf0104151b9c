#!/usr/bin/env bash
# Installs pinned MCP servers (the reference server "everything", Playwright)
# for the tests and prints the folder that holds their node_modules.
#
#   export SIGNALBOX_TEST_NPM="$(scripts/install-mcp-servers.sh)"
#
# Where: $SIGNALBOX_TEST_NPM if that is set, else .cache/npm under the
# repository. A second run finds everything in place. Playwright's own browsers
# are not fetched: the tests use the chromium on PATH.
set -euo pipefail

everything_version=2026.8.31
playwright_version=0.0.83

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/npm.sh"
cache=${SIGNALBOX_TEST_NPM:-$root/.cache/npm}

install() {
	fetch "@modelcontextprotocol/server-everything@$everything_version" "@playwright/mcp@$playwright_version"
	node "$cache/node_modules/@playwright/mcp/cli.js" --version >/dev/null || fail "@playwright/mcp does not start"
}

[ -d "$cache/node_modules" ] || rm -f "$cache/.installed"
once install "everything $everything_version playwright $playwright_version"
echo "$cache"
