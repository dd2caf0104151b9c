# Sourced by the other scripts: installs pinned npm packages into the cache
# folder $cache.

fail() {
	echo "$(basename "$0" .sh): $*" >&2
	exit 1
}

# fetch PACKAGE…: downloads only from the registry. The packages' install scripts,
# which may download from elsewhere, are not run.
fetch() {
	local try log=$cache/npm.log
	command -v npm >/dev/null || fail "npm is needed (it comes with Node.js 20 or newer)"
	[ -f "$cache/package.json" ] || echo '{"private": true}' >"$cache/package.json"
	for try in 1 2 3; do
		if (cd "$cache" && npm install --ignore-scripts --no-audit --no-fund --no-save \
			--loglevel=error --fetch-retries=4 --fetch-timeout=120000 "$@") >"$log" 2>&1; then
			return 0
		fi
		[ "$try" = 3 ] || sleep $((try * 3))
	done
	sed 's/^/  /' "$log" >&2
	fail "npm could not install $*; its output is above"
}

# once INSTALL STAMP: runs INSTALL unless the cache already has STAMP, in one
# process at a time.
once() {
	[ "$(cat "$cache/.installed" 2>/dev/null)" = "$2" ] && return
	mkdir -p "$cache"
	if command -v flock >/dev/null; then
		exec 9>"$cache/.lock"
		flock 9
	fi
	[ "$(cat "$cache/.installed" 2>/dev/null)" = "$2" ] && return
	"$1"
	echo "$2" >"$cache/.installed"
}
