#!/usr/bin/env bash
# Vendors the third-party modules that the dashboard uses, as published on npm,
# with their licences.
#
#   scripts/vendor-pages.sh           fetches them and writes them
#   scripts/vendor-pages.sh --check   fetches them and checks that they are the same
#
# A package is used only if it has the hash in this file, which is the registry's
# own (npm view NAME@VERSION dist.integrity).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
vendor=$root/internal/dashboard/assets/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=$vendor
[ "${1:-}" = --check ] && target=$work/vendor

fail() {
	echo "vendor-pages: $*" >&2
	exit 1
}

# take PACKAGE@VERSION SHA512 FOLDER FILE…: files of a package into a folder.
take() {
	local package=$1 hash=$2 folder=$3 archive file
	shift 3
	archive=$(cd "$work" && npm pack --silent "$package" | tail -n 1)
	[ "$(openssl dgst -sha512 -binary "$work/$archive" | base64 -w0)" = "$hash" ] ||
		fail "$package is not what it was: its SHA-512 is another one"
	mkdir -p "$work/$folder" "$target/$folder"
	tar -xzf "$work/$archive" -C "$work/$folder" --strip-components=1
	for file in "$@"; do
		install -m 644 "$work/$folder/$file" "$target/$folder/$(basename "$file")"
	done
}

# htm/preact/standalone contains preact, so preact's licence is added.
take htm@3.1.1 983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ== htm \
	preact/standalone.module.js LICENSE
take preact@10.5.15 5chK29n6QcJc3m1lVrKQSQ+V7K1Gb8HeQY6FViQ5AxCAEGu3DaHffWNDkC9+miZgsLvbvU9rxbV1qinGHMHzqA== preact \
	LICENSE
take uplot@1.6.32 KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw== uplot \
	dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE
take @xterm/xterm@6.0.0 TQwDdQGtwwDt+2cgKDLn0IRaSxYu1tSUjgKarSDkUM0ZNiSRXFpjxEsvc/Zgc5kq5omJ+V0a8/kIM2WD3sMOYg== xterm \
	lib/xterm.mjs css/xterm.css LICENSE
take prismjs@1.30.0 DEvV2ZF2r2/63V+tK8hQvrR2ZGn10srHbXviTlcv7Kpzw8jWiNTqbVgjO3IY8RxrrOUF8VPMQQFysYYYv0YZxw== prism \
	components/prism-core.min.js components/prism-markup.min.js components/prism-css.min.js \
	components/prism-clike.min.js components/prism-javascript.min.js components/prism-typescript.min.js \
	components/prism-jsx.min.js components/prism-tsx.min.js components/prism-go.min.js \
	components/prism-python.min.js components/prism-rust.min.js components/prism-java.min.js \
	components/prism-kotlin.min.js components/prism-c.min.js components/prism-cpp.min.js \
	components/prism-csharp.min.js components/prism-ruby.min.js components/prism-markup-templating.min.js \
	components/prism-php.min.js components/prism-swift.min.js components/prism-bash.min.js \
	components/prism-json.min.js components/prism-yaml.min.js components/prism-toml.min.js \
	components/prism-sql.min.js components/prism-markdown.min.js components/prism-docker.min.js \
	components/prism-makefile.min.js components/prism-lua.min.js LICENSE

if [ "$target" != "$vendor" ]; then
	diff -r "$target" "$vendor" || fail "the vendored files differ from the packages: run scripts/vendor-pages.sh"
	echo "vendor-pages: all as in the packages"
fi
