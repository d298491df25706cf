#!/usr/bin/env bash
# The report page in a browser: makes a report of a small real run, and pages of every outcome, and
# looks at them in headless Chromium, which page.mjs drives.
#   tests/browser/run.sh GATES UNIT_TESTS BUILD_DIR [HISTORY]
#                                outcomes_gates, llmbench_tests; llmbench for the page of a history, too
# Exits 77 where there is no Chromium or no Node.js ($CHROMIUM names one that is not in PATH).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: run.sh GATES UNIT_TESTS BUILD_DIR [HISTORY]"
gates=$(realpath "${1:?$usage}")
unit_tests=$(realpath "${2:?$usage}")
history=${4:+$(realpath "$4")}
mkdir -p "${3:?$usage}"
cd "$3"
# What a caller has set for gates of its own must not reach these.
unset "${!LLMBENCH_@}"

skip() { echo "skipped: $1"; exit 77; }
browser=${CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
    [[ $browser ]] || browser=$(command -v "$name" || true)
done
[[ $browser ]] || skip "there is no Chromium here (Debian: apt install chromium)."
for name in node npm; do
    command -v "$name" > /dev/null || skip "$name, for what drives the browser, is not installed."
done
(($(node -p 'process.versions.node.split(".")[0]') >= 18)) ||
    skip "what drives the browser needs Node.js 18, this is $(node --version)."

if ! cmp -s "$here/package-lock.json" package-lock.json || [[ ! -d node_modules ]]; then
    cp "$here/package.json" .
    npm_log=$(cp "$here/package-lock.json" . && npm ci --ignore-scripts --loglevel=error 2>&1) ||
        { rm -f package-lock.json; echo "$npm_log"; echo "npm could not install the driver"; exit 1; }
fi

rm -rf real pages
status=0
LLMBENCH_REPORT_DIR=real "$gates" > gates.log 2>&1 \
    --test-case="pass,miss,inconclusive,server sheds load,refused,pull request" || status=$?
((status == 1)) || { cat gates.log; echo "the gates exited with $status instead of 1"; exit 1; }
LLMBENCH_GALLERY=pages "$unit_tests" --test-case="pages are written for the browser" > /dev/null
node "$here/page.mjs" "$browser" real pages/gallery pages/hostile
[[ -z $history ]] || node "$here/history.mjs" "$browser" "$history" real
