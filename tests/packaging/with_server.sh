#!/usr/bin/env bash
# llmbench-with-server.sh measures the server that it started, or nothing: not one that was there
# before, not one that took its place, and nobody's proxy. tests/templates/runner.sh has the rest of
# run_gates.sh, which does all of it.
#   tests/packaging/with_server.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
unset no_proxy NO_PROXY http_proxy HTTP_PROXY "${!LLMBENCH_@}" "${!GITHUB_@}"
failed=0
read -r port proxy < <(python3 tests/support/free_ports.py 2)
url=http://127.0.0.1:$port

# script NAME: a program of its standard input
script() {
    { echo '#!/bin/sh'; cat; } > "$work/$1"
    chmod +x "$work/$1"
}
# ends STATUS TEXT GATES SERVER: so does the helper, and says so
ends() {
    local status=0
    PORT=$port WORK=$work LLMBENCH_URL=$url/v1 LLMBENCH_REPORT_DIR=$work/report/deep \
        sh ci/packaging/llmbench-with-server.sh "$url/health" 60 "$work/$3" "$work/$4" > "$work/log" 2>&1 || status=$?
    if [[ $status == "$1" ]] && grep -qF -- "$2" "$work/log"; then echo "ok: $3 with $4: $2"; return; fi
    failed=1
    echo "WRONG: $3 with $4 ends with $status instead of $1, or does not say: $2"
    sed 's/^/    | /' "$work/log"
}
listens() { (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

# What gates are told, and how they end; writes down what it has to.
script gates << 'GATES'
printf '{\n  "exit_code": %s,\n' "$1" > "$LLMBENCH_REPORT_DIR/result.json"
echo "ends with $1, waits $LLMBENCH_READY_WITHIN s for $LLMBENCH_READY_PATH"
exit "$1"
GATES
# shellcheck disable=SC2016  # for the scripts that they become
{
    script passing <<< 'exec "$WORK/gates" 0'
    script missing <<< 'exec "$WORK/gates" 1'
    script skipping <<< 'exec "$WORK/gates" 77'
    script sound <<< 'exec python3 tests/support/answers.py "$PORT"'
}
ends 0 "ends with 0, waits 60 s for $url/health" passing sound
ends 1 "ends with 1" missing sound
ends 77 "ends with 77" skipping sound
[[ -e $work/report/deep/server.log ]] || { failed=1; echo "WRONG: the log is not beside the reports"; }

# Nobody is there because a proxy answers.
python3 tests/support/answers.py "$proxy" > "$work/proxy.log" 2>&1 &
until listens "$proxy"; do sleep 0.05; done
http_proxy=http://127.0.0.1:$proxy ends 0 "ends with 0" passing sound
if [[ -s $work/proxy.log ]]; then failed=1; echo "WRONG: the proxy was asked: $(< "$work/proxy.log")"; fi

# One that was there before and is not ready yet. A gateway with nobody behind it is no server.
for status in 503 404 502; do
    python3 tests/support/answers.py "$port" "$status" > /dev/null 2>&1 &
    other=$!
    until listens "$port"; do sleep 0.05; done
    script waits <<< 'sleep 60'
    if ((status == 502)); then ends 0 "ends with 0" passing waits
    else ends 3 "something is there already" passing sound; fi
    kill "$other"
    wait "$other" || true
done

# Another takes the place: the one that was started ends while the gates run. The other is none of its
# group, and so is not ended with it.
script port_is_taken << 'SERVER'
setsid python3 tests/support/answers.py "$PORT" > /dev/null 2>&1 &
echo $! > "$WORK/other"
until [ -e "$WORK/end" ]; do sleep 0.05; done
echo "Address already in use"
exit 1
SERVER
script end_it <<< "touch \"\$WORK/end\"; sleep 60"
ends 3 "the server ended before the gates did" end_it port_is_taken
kill "$(< "$work/other")"
grep -qF "| Address already in use" "$work/log" || { failed=1; echo "WRONG: its log is not shown"; }
exit "$failed"
