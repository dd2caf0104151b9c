#!/usr/bin/env bash
# Runs every fuzz target, one after the other, for FUZZTIME each (default 10s).
#
#   scripts/fuzz.sh                   all of them
#   FUZZTIME=5m scripts/fuzz.sh cron  those whose package or name contains "cron"
#
# A target that finds a failing input writes it to testdata/fuzz in its package.
# Commit that file with the fix; go test then runs it every time. All targets run,
# even after one has failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${FUZZTIME:-10s}
only=${1:-}
failed=()
while IFS=: read -r file name; do
	package=./$(dirname "$file")
	case "$package $name" in *"$only"*) ;; *) continue ;; esac
	echo "== $package $name"
	if ! ${GO:-go} test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -parallel "${FUZZPARALLEL:-2}" "$package"; then
		failed+=("$package $name")
	fi
done < <(git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9]+' | sed -E 's/func //' | sort)
if [ ${#failed[@]} -gt 0 ]; then
	printf 'found something: %s\n' "${failed[@]}" >&2
	exit 1
fi
