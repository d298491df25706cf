#!/usr/bin/env bash
# Shows llmbench at work: builds the examples and runs two gates, of which one fails on purpose.
#   ci/demo.sh            against the built-in simulated server
#   ci/demo.sh --real     against a real inference engine on this machine (needs npm, downloads it)
# Exits 0 when exactly the one gate failed that is meant to.
set -euo pipefail
# shellcheck source=ci/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

real=
case ${1:-} in
    '') ;;
    --real) real=1 ;;
    *) die "usage: ci/demo.sh [--real]" ;;
esac

real_examples=(server)  # those that take any server

# answers URL: its /health says 200
answers() {
    local status host=${1#http://}
    { exec 3<> "/dev/tcp/${host%:*}/${host##*:}"; } 2> /dev/null || return 1
    printf 'GET /health HTTP/1.0\r\n\r\n' >&3
    read -r _ status _ <&3
    exec 3>&-
    [[ $status == 200 ]]
}

need_compiler
if [[ $real ]]; then need_node; fi

say "building the examples into build/demo"
configure demo -DCMAKE_BUILD_TYPE=Release -DLLMBENCH_BUILD_TESTS=OFF -DLLMBENCH_BUILD_BENCH=OFF
cmake --build build/demo --parallel "$(cores)"

report=$PWD/build/demo/llmbench-report
rm -rf "$report"
export LLMBENCH_REPORT_DIR=$report
unset LLMBENCH_URL

# The same gates as against any server: LLMBENCH_URL says where it is.
if [[ $real ]]; then
    say "bringing up the real engine"
    bash tests/real_engine/setup.sh "$PWD/build/real_engine"
    log=build/real_engine/server.log
    build/real_engine/start.sh --port 0 > "$log" 2>&1 &
    server=$!
    trap 'kill "$server" 2> /dev/null || true' EXIT
    for ((wait = 0; wait < 120; wait++)); do
        url=$(sed -n 's/^listening on //p' "$log")
        if [[ $url ]] && answers "$url"; then break; fi
        kill -0 "$server" 2> /dev/null || { cat "$log" >&2; die "the engine ended"; }
        sleep 0.5
    done
    answers "$url" || die "the engine at $url did not become ready; see $log"
    export LLMBENCH_URL=$url
    for name in "${real_examples[@]}"; do
        say "running build/demo/examples/$name against the engine at $url"
        "build/demo/examples/$name"
    done
    echo
    echo "The report: $report/report.html"
    exit
fi

say "running build/demo/examples/quickstart"
status=0
log=build/demo/quickstart.log
build/demo/examples/quickstart 2>&1 | tee "$log" || status=${PIPESTATUS[0]}

# One gate passed, one failed, and the program said so to its caller.
if ((status != 1)) || ! grep -Eq 'test cases: +2 +\| +1 passed +\| +1 failed' "$log"; then
    die "expected one gate to pass, one to fail and exit status 1; got exit status $status"
fi
[[ -s $report/report.html ]] || die "the run left no report in $report"

cat <<END

== what you have seen
The first gate passed. The second failed, on purpose: its limit is out of the server's reach, and
the program exited with 1, which is what stops a pull request in CI.

  the gates        examples/quickstart.cpp
  the report       $report/report.html    (open it in a browser)
  for a machine    $report/result.json, records.jsonl, junit.xml

Against your own server:  LLMBENCH_URL=http://HOST:PORT build/demo/examples/...
END
