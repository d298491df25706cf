# shellcheck shell=bash
# Checks on what a program says, $log, and how it ends, for scripts whose files are in $work. Sourced.
log=${work:?}/log passed=0 failed=0 stalled='' what=
# shellcheck source=tests/support/too_busy.sh
source "$(dirname "${BASH_SOURCE[0]}")/too_busy.sh"

ok() { passed=$((passed + 1)); }
wrong() {
    if was_too_busy "$log"; then
        [[ $stalled == "$what" ]] || stalled "$what"
        stalled=$what
        return
    fi
    failed=$((failed + 1))
    echo "WRONG: $what: $1"
    sed 's/^/    | /' "$log"
}
# ended STATUS COMMAND...: it exits so; what it said is in $log
ended() {
    local wanted=$1 status=0
    shift
    "$@" > "$log.raw" 2>&1 || status=$?
    sed -z 's/\n      \+/ /g' "$log.raw" > "$log"  # lines that go on behind an indent are one
    if ((status == wanted)); then ok; else wrong "exit code $status instead of $wanted"; fi
}
# waited STATUS: the program in the background, $pid, exits so
waited() {
    local status=0
    wait "${pid:?}" 2> /dev/null || status=$?
    if ((status == $1)); then ok; else wrong "exit code $status instead of $1"; fi
}
says() {
    local text
    for text in "$@"; do
        if grep -qF -- "$text" "$log"; then ok; else wrong "it does not say: $text"; fi
    done
}
says_not() { if grep -qF -- "$1" "$log"; then wrong "it says: $1"; else ok; fi; }
# holds WHAT_IS_WRONG COMMAND...: it succeeds
holds() { if "${@:2}"; then ok; else wrong "$1"; fi; }
says_like() { if grep -qE -- "$1" "$log"; then ok; else wrong "nothing it says matches: $1"; fi; }

# wait_for_port PORT: a minute at most
wait_for_port() {
    local tries
    for ((tries = 0; tries < 1200; ++tries)); do
        if (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; then return; fi
        sleep 0.05
    done
    echo "nothing listens on port $1 after a minute"
    exit 1
}
