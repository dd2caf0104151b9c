#!/bin/sh
# The test steps of the execution queue, with curl, against a director and an
# idle agent of kind demo (which does what the words "sleep 1s" in a message
# say):
#
#   DIRECTOR=http://127.0.0.1:8080 AGENT=demo [TOKEN=…] sh execution-queue.sh
#
# It prints each request with the status and the body of its answer, one
# answer a line, and says "not ok" and ends with 1 at the first one that is not
# as the steps expect.
set -eu

: "${DIRECTOR:=http://127.0.0.1:8080}" "${AGENT:=demo}" "${TOKEN:=}"
lane=$DIRECTOR/api/agents/$AGENT
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

step() { printf '\n# %s\n' "$*"; }

fail() {
	printf 'not ok: %s\n' "$*"
	exit 1
}

# ask NAME CURL-ARGUMENTS… keeps "STATUS BODY" in $tmp/NAME and the headers in
# $tmp/NAME.head.
ask() {
	name=$1
	shift
	[ -z "$TOKEN" ] || set -- -H "Authorization: Bearer $TOKEN" "$@"
	code=$(curl -sS -o "$tmp/$name.body" -D "$tmp/$name.head" -w '%{http_code}' -H 'Content-Type: application/json' "$@")
	# The file appears whole, when the answer is there.
	printf '%s %s\n' "$code" "$(tr -d '\n' <"$tmp/$name.body")" >"$tmp/$name.part"
	mv "$tmp/$name.part" "$tmp/$name"
}

queue() { ask "${1:-queue}" "$lane/queue"; }
post() { ask "$1" -X POST "$lane/$2"; }
chat() { ask "$1" -X POST "$lane/chat" -d "{\"message\": \"$2\"}"; }

# show NAME… prints answers.
show() { for n in "$@"; do printf '%s: ' "$n"; cat "$tmp/$n"; done; }

# want NAME TEXT… wants each text in an answer.
want() {
	n=$1
	shift
	for text in "$@"; do
		grep -qF -- "$text" "$tmp/$n" || fail "$n has no $text: $(cat "$tmp/$n")"
	done
}

# until_queue TEXT… asks for the lane until all texts are in the answer.
until_queue() {
	i=0
	while :; do
		queue
		missing=
		for text in "$@"; do grep -qF -- "$text" "$tmp/queue" || missing=$text; done
		[ -n "$missing" ] || return 0
		i=$((i + 1))
		[ $i -lt 600 ] || fail "the lane never says $missing: $(cat "$tmp/queue")"
		sleep 0.1
	done
}

step 1. Verify queue status endpoint
until_queue '200 ' '"is_busy":false'
show queue
want queue "\"agent_name\":\"$AGENT\"" '"current_execution":null' '"queue_length":0' '"queued_executions":[]'

step 2. Test single execution
chat hello 'sleep 1s and say hello' &
until_queue '"is_busy":true' '"status":"running"'
show queue
wait $!
show hello
want hello '200 ' '"response":"' '"queue_status":"running"' '"was_queued":false' '"metadata":{'
until_queue '"is_busy":false'

step 3. Test queue behavior: two at the same time
chat one 'sleep 500ms, first or second' &
one=$!
chat two 'sleep 500ms, second or first' &
wait $one $!
show one two
if grep -qF '"queue_status":"running"' "$tmp/one"; then first=one second=two; else first=two second=one; fi
want $first '200 ' '"queue_status":"running"' '"was_queued":false'
want $second '200 ' '"queue_status":"queued:1"' '"was_queued":true'
ended() { sed 's/.*"timestamp":"\([^"]*\)".*/\1/' "$tmp/$1"; }
[ "$(printf '%s\n' "$(ended $first)" "$(ended $second)" | sort | head -n 1)" = "$(ended $first)" ] || fail "the second ended first"
until_queue '"is_busy":false'

step 4. Test queue full: five rapid requests
for i in 1 2 3 4 5; do
	chat "rapid$i" "sleep 10m, request $i" &
	eval "pid$i=$!"
done
until_queue '"is_busy":true' '"queue_length":3'
i=0
while :; do
	full=$(cd "$tmp" && grep -l '^429 ' rapid1 rapid2 rapid3 rapid4 rapid5 2>/dev/null || true)
	[ -z "$full" ] || break
	i=$((i + 1))
	[ $i -lt 600 ] || fail "none of five was refused"
	sleep 0.1
done
[ "$(printf '%s\n' "$full" | wc -l)" -eq 1 ] || fail "more than one of five was refused: $full"
cp "$tmp/$full" "$tmp/full"
show full queue
want full '"error":"Agent queue is full"' '"code":"queue_full"' "\"agent\":\"$AGENT\"" '"queue_length":3' '"retry_after":30' \
	"\"message\":\"Agent '$AGENT' is busy with 3 queued requests. Please try again later.\""
grep -qi '^Retry-After: 30' "$tmp/$full.head" || fail "the answer has no Retry-After: 30"

step 5. Test queue clear
post clear queue/clear
show clear
want clear '200 ' '"status":"cleared"' "\"agent\":\"$AGENT\"" '"cleared_count":3'
until_queue '"is_busy":true' '"queue_length":0'
show queue

step 6. Test force release
post release queue/release
show release
want release '200 ' '"status":"released"' "\"agent\":\"$AGENT\"" '"was_running":true' \
	'"warning":"Agent queue state has been reset. Any in-progress execution may still be running."'
for i in 1 2 3 4 5; do eval "wait \$pid$i"; done
(cd "$tmp" && sed 's/^\([0-9]*\) .*"code":"\([a-z_]*\)".*/\1 \2/' rapid1 rapid2 rapid3 rapid4 rapid5 | sort) >"$tmp/five"
printf 'the five: %s\n' "$(tr '\n' ',' <"$tmp/five")"
[ "$(tr '\n' ',' <"$tmp/five")" = '409 cancelled,409 cancelled,409 cancelled,409 released,429 queue_full,' ] || fail "the five ended otherwise"
until_queue '"is_busy":false'

step Edge cases
post again queue/release
post nothing queue/clear
ask unknown -X POST "$DIRECTOR/api/agents/nobody-has-this-name/chat" -d '{"message": "hello"}'
ask forged -X POST "$lane/chat" -H 'X-Source-Agent: somebody-else' -d '{"message": "hello"}'
ask empty -X POST "$lane/chat" -d '{}'
show again nothing unknown forged empty
want again '200 ' '"was_running":false'
want nothing '200 ' '"cleared_count":0'
want unknown '404 ' '"error":"not_found"'
want forged '403 ' 'X-Source-Agent'
want empty '400 ' '"error":"validation_error"'
until_queue '"is_busy":false' '"queue_length":0'

printf '\nok\n'
