#!/usr/bin/env bash
# Builds the documentation as a website from docs/ into build/site, or into the
# given folder.
#
#   scripts/build-site.sh [FOLDER]      SITE_URL=https://… makes absolute links in llms.txt
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=$("$root/scripts/install-site-packages.sh")
out=${1:-$root/build/site}
case $out in /*) ;; *) out=$PWD/$out ;; esac

rm -rf "$out"
cd "$root"
SITE_MODULES=$packages/node_modules SITE_OUT=$out \
	node "$packages/node_modules/@11ty/eleventy/cmd.cjs" --config=scripts/site/eleventy.config.mjs --quiet >&2
echo "$out"
