#!/usr/bin/env bash
# llmbench-with-server.sh measures the server that it started, or nothing: not one that was there
# before, not one that took its place, and nobody's proxy.
#   tests/packaging/with_server.sh      uses $CMAKE
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake=$(command -v "${CMAKE:-cmake}")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
unset no_proxy NO_PROXY http_proxy HTTP_PROXY
failed=0
read -r port proxy < <(python3 tests/support/free_ports.py 2)
url=http://127.0.0.1:$port/health

# script NAME: a program of its standard input
script() {
    { echo '#!/bin/sh'; cat; } > "$work/$1"
    chmod +x "$work/$1"
}
# ends STATUS TEXT GATES SERVER: so does the helper, and says so
ends() {
    local status=0
    CMAKE=$cmake PORT=$port WORK=$work sh ci/packaging/llmbench-with-server.sh \
        "${asks:-$cmake}" "$url" "${within:-60}" "$work/server.log" "$work/$3" "$work/$4" \
        > "$work/log" 2>&1 || status=$?
    if [[ $status == "$1" ]] && grep -qF -- "$2" "$work/log"; then echo "ok: $3 with $4: $2"; return; fi
    failed=1
    echo "WRONG: $3 with $4 ends with $status instead of $1, or does not say: $2"
    sed 's/^/    | /' "$work/log"
}
listens() { (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

script passing <<< 'echo passing'
script missing <<< 'echo missing; exit 1'
script skipping <<< 'echo skipping; exit 77'
# shellcheck disable=SC2016  # for the script that it becomes
script sound <<< 'exec python3 tests/support/answers.py "$PORT"'
script never_ready <<< 'exec sleep 60'
ends 0 passing passing sound
ends 1 missing missing sound
ends 77 skipping skipping sound

# Nobody's server is ready because a proxy answers.
python3 tests/support/answers.py "$proxy" > "$work/proxy.log" 2>&1 &
until listens "$proxy"; do sleep 0.05; done
export http_proxy=http://127.0.0.1:$proxy
within=1 ends 3 "did not answer 200 at $url within 1 s" passing never_ready
ends 0 passing passing sound
if [[ -s $work/proxy.log ]]; then failed=1; echo "WRONG: the proxy was asked: $(< "$work/proxy.log")"; fi
unset http_proxy

# One that was there before and is not ready yet. A gateway with nobody behind it is no server.
for status in 503 404; do
    python3 tests/support/answers.py "$port" "$status" > /dev/null 2>&1 &
    other=$!
    until listens "$port"; do sleep 0.05; done
    ends 3 "something is at $url already" passing sound
    kill "$other"
    wait "$other" || true
done

# Another takes the place: the one that was started ends, before it is ready or while the gates run.
# The other is none of its group, and so is not ended with it.
script port_is_taken << 'SERVER'
setsid python3 tests/support/answers.py "$PORT" > /dev/null 2>&1 &
echo $! > "$WORK/other"
echo $$ > "$WORK/server"
until [ -e "$WORK/end" ]; do sleep 0.05; done
echo "Address already in use"
exit 1
SERVER
# end_it: tells the server to end, and waits until it has
script end_it << 'END_IT'
touch "$WORK/end"
stat=/proc/$(cat "$WORK/server")/stat
while [ -e "$stat" ] && [ "$(sed 's/.*) //; s/ .*//' "$stat")" != Z ]; do sleep 0.05; done
END_IT
# Asks once nobody but the other can answer.
script asks_late << 'ASKS'
if [ -e "$WORK/server" ]; then
    "$WORK/end_it"
    until "$CMAKE" "$@" 2>&1 | grep -q 200; do sleep 0.05; done
fi
exec "$CMAKE" "$@"
ASKS
asks=$work/asks_late ends 3 "ended before it was ready" passing port_is_taken
kill "$(< "$work/other")"
rm "$work"/{end,server,other}
while listens "$port"; do sleep 0.05; done
ends 3 "ended before the gates did" end_it port_is_taken
kill "$(< "$work/other")"
grep -qF "| Address already in use" "$work/log" || { failed=1; echo "WRONG: its log is not shown"; }
exit "$failed"
