#!/usr/bin/env bash
# Installs pinned coding CLIs (Claude Code, Codex, opencode) for the end-to-end
# tests and prints the folder with their executables.
#
#   export SIGNALBOX_TEST_AGENTS="$(scripts/install-agents.sh)"
#
# Where: $SIGNALBOX_TEST_AGENTS_CACHE, else $SIGNALBOX_TEST_AGENTS if that is
# set, else .cache/agents under the repository. A second run finds everything in
# place and takes milliseconds. The executables come from the platform packages.
set -euo pipefail

claude_version=2.1.329
codex_version=0.169.0
opencode_version=1.18.33

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/npm.sh"
cache=${SIGNALBOX_TEST_AGENTS_CACHE:-${SIGNALBOX_TEST_AGENTS:-$root/.cache/agents}}
# The printed bin folder is a valid value of the variable too.
case $cache in */bin) cache=${cache%/bin} ;; esac
bin=$cache/bin

# Node.js' names of this platform, which the packages use.
platform() {
	local os arch
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "no packages for $(uname -s); Linux and macOS are supported" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=x64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "no packages for the processor $(uname -m)" ;;
	esac
	echo "$os-$arch"
}

# link NAME EXECUTABLE: creates $bin/NAME after checking that it starts.
link() {
	[ -f "$2" ] || fail "$1: $2 is not in the package"
	chmod +x "$2"
	HOME=$cache/home CODEX_HOME=$cache/home "$2" --version >"$cache/$1.version" 2>&1 </dev/null ||
		fail "$1 does not start: $(head -c 300 "$cache/$1.version")"
	ln -sfn "$2" "$bin/$1"
}

# The executable of a codex platform package is in a folder named after the
# compiler's target.
codex_binary() {
	local found
	found=$(find "$1/vendor" -type f -name codex 2>/dev/null | head -n 1)
	echo "${found:-$1/vendor/codex}"
}

install() {
	local p
	p=$(platform)
	mkdir -p "$bin" "$cache/home"
	fetch "@anthropic-ai/claude-code-$p@$claude_version" \
		"@openai/codex-$p@npm:@openai/codex@$codex_version-$p" \
		"opencode-$p@$opencode_version"
	link claude "$cache/node_modules/@anthropic-ai/claude-code-$p/claude"
	link codex "$(codex_binary "$cache/node_modules/@openai/codex-$p")"
	link opencode "$cache/node_modules/opencode-$p/bin/opencode"
}

for cli in claude codex opencode; do
	[ -x "$bin/$cli" ] || rm -f "$cache/.installed"
done
once install "claude $claude_version codex $codex_version opencode $opencode_version"
echo "$bin"
