# shellcheck shell=bash
# The legs of a long run. It begins with what comes and how long each took here the last time, and ends
# with a line for each, whatever ends it; which is a pass only where the run itself says so, as its last
# word. Sourced by ci/test.sh.

took=build/leg-seconds  # NAME SECONDS, a line each
leg='' leg_began=0 legs=() all_passed='' beside=''

seconds_of() { [[ ! -e $took ]] || sed -n "s/^$1 //p" "$took"; }

# legs_to_come NAME...
legs_to_come() {
    local name last
    for name in "$@"; do
        last=$(seconds_of "$name")
        printf '   %-22s %s\n' "$name" "${last:+$last s the last time}"
    done
    [[ -e $took ]] || echo "   how long each takes is not known here yet: the first run compiles everything"
    trap tell_legs EXIT
}

# leg NAME: it begins, and what went before it has passed
leg() {
    end_leg
    local last
    last=$(seconds_of "$1")
    leg=$1 leg_began=$SECONDS
    say "$1, after $SECONDS s$([[ ! $last ]] || echo "; the last time it took $last s")"
}
end_leg() {
    [[ $leg ]] || return 0
    local seconds=$((SECONDS - leg_began))
    legs+=("$(printf 'passed  %-22s %5d s' "$leg" "$seconds")")
    mkdir -p "$(dirname "$took")"
    { grep -v "^$leg " "$took" 2> /dev/null || true; echo "$leg $seconds"; } > "$took.new"
    mv "$took.new" "$took"
    leg=
}

# beside_legs COMMAND LOG: in the background, in a group that ends with the run
beside_legs() {
    set -m
    "$1" > "$2" 2>&1 &
    beside=$!
    set +m
}

# count_stalled LOG: a test that failed because the machine stalled its client, as that says itself, was
# skipped. It shows nothing, so a run may not have many.
most_stalled=2 stalled=0
count_stalled() {
    local tests
    tests=$(grep '^stalled by the machine: ' "$1") || return 0
    echo "$tests"
    stalled=$((stalled + $(wc -l <<< "$tests")))
    ((stalled <= most_stalled)) ||
        die "the machine stalled $stalled tests, and a run with more than $most_stalled shows too little"
}

# all_legs_passed: the last word of a run
all_legs_passed() {
    end_leg
    all_passed=1
}

# Where a signal ends the run, the status is that of whatever was done before.
tell_legs() {
    local status=$? how=FAILED
    if [[ $beside ]]; then kill -s TERM -- "-$beside" 2> /dev/null || true; fi
    if [[ ! $all_passed ]]; then
        if ((status == 0 || status > 128)); then how=KILLED; fi
        if ((status == 0)); then status=1; fi
        if [[ $leg ]]; then legs+=("$(printf '%s  %-22s %5d s' "$how" "$leg" $((SECONDS - leg_began)))"); fi
    fi
    printf '\n'
    printf '%s\n' "${legs[@]}"
    exit "$status"
}
