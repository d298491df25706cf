#!/bin/sh
# Runs gates beside a server: starts it, waits until it answers, ends it with all its children.
#   llmbench-with-server.sh CMAKE READY_URL SECONDS LOG GATES SERVER [ARGUMENT...]
# Exits as the gates do; or with 3 and the end of the server's log where it was not ready in time, or not
# there to the end: then something else may have answered the gates.
set -eu
cmake=$1 ready=$2 seconds=$3 log=$4 gates=$5
shift 5
mkdir -p "$(dirname "$log")"

# CMake is there and speaks HTTP; curl need not be.
seen() { "$cmake" -DURL="$ready" -P "$(dirname "$0")/llmbench-probe.cmake" 2>&1; }
case $(seen) in
    '' | 502 | 504) ;;  # nobody, or a gateway with nobody behind it
    *)
        echo "llmbench_add_gate: something is at $ready already: it would be measured instead"
        exit 3 ;;
esac

# In a process group of its own. macOS has no setsid, and a shell that needs no terminal for set -m.
own_group=setsid
if ! command -v setsid > /dev/null; then own_group='' && set -m; fi
# What steers a job of GitHub's is nothing for a server.
$own_group env -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_OUTPUT -u GITHUB_STATE -u GITHUB_STEP_SUMMARY \
    "$@" > "$log" 2>&1 < /dev/null &
server=$!
stop() {
    kill -s TERM -- "-$server" 2> /dev/null || kill -s TERM "$server" 2> /dev/null || true
    (sleep 5 && kill -s KILL -- "-$server") > /dev/null 2>&1 &
    patience=$!
    wait "$server" 2> /dev/null || true
    kill "$patience" 2> /dev/null || true
    kill -s KILL -- "-$server" 2> /dev/null || true  # what it left behind
}
trap stop EXIT
trap 'exit 143' INT TERM

fail() {
    echo "llmbench_add_gate: the server $1; its log $log ends:"
    tail -n 40 "$log" | tr '\r' '\n' |
        LC_ALL=C sed 's/[[:cntrl:]]/?/g; s/##/# #/g; s/^/    | /'  # words, no commands for a runner
    exit 3
}
lives() { kill -0 "$server" 2> /dev/null; }
end=$(($(date +%s) + seconds))
while :; do
    state=$(seen)
    # Whatever answers: ours may have found its port taken.
    lives || fail "ended before it was ready"
    if [ "$state" = 200 ]; then break; fi
    [ "$(date +%s)" -lt "$end" ] || fail "did not answer 200 at $ready within $seconds s"
    sleep 0.1
done
status=0
"$gates" || status=$?
sleep 0.1  # a shell hears of a child that has ended when it waits for one
if ! lives; then
    case $status in 0 | 77) fail "ended before the gates did, which exited with $status" ;; esac
    echo "llmbench_add_gate: the server ended before the gates did; its log is $log"
fi
exit "$status"
