#!/usr/bin/env bash
# Runs every fuzz target, one after the other, FUZZTIME each (10s unless set).
#
#   scripts/fuzz.sh                   all of them
#   FUZZTIME=5m scripts/fuzz.sh cron  those whose package or name holds "cron"
#
# A target that finds something writes it to testdata/fuzz beside it: commit
# that file with what mends it, and go test tries it from then on. All targets
# run, also behind one that found something.
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
