#!/usr/bin/env bash
# Which commit made a server slower: git bisect, by gates.
#   ci/bisect.sh GOOD BAD BUILD GATES [GOOD_FILE]
# Run it in a clean checkout of the server's repository. BUILD is a command that builds the server of
# the commit that is checked out; where it fails the commit is passed over. GATES is a command that
# runs one gate on it, such as '/path/to/gates --test-case=chat': the gate starts the server by
# process{...}, or the command does. Build the gates once, outside of the checkout. LLMBENCH_BISECT
# may name one statistic, default: all objectives count.
# GOOD is measured first, into GOOD_FILE (default: a temporary file), and all others are held against
# that. Ends with 0 where one commit is found, 1 where a few are left, 2 where it could not go on.
set -euo pipefail
usage="usage: bisect.sh GOOD BAD BUILD GATES [GOOD_FILE]"
good=$(git rev-parse --verify --quiet "${1:?$usage}^{commit}") || { echo "$1 is no commit" >&2; exit 2; }
bad=$(git rev-parse --verify --quiet "${2:?$usage}^{commit}") || { echo "$2 is no commit" >&2; exit 2; }
export BUILD=${3:?$usage} GATES=${4:?$usage}
work=$(mktemp -d)
export LLMBENCH_BISECT_GOOD=${5:-$work/good.json}
what=${LLMBENCH_BISECT:-1}
unset LLMBENCH_BISECT
[[ -z $(git status --porcelain --untracked-files=no) ]] || { echo "the checkout has changes" >&2; exit 2; }
was=$(git symbolic-ref --quiet --short HEAD || git rev-parse HEAD)
trap 'git bisect reset > /dev/null 2>&1 || true; git checkout --quiet "$was"; rm -rf "$work"' EXIT

git checkout --quiet "$good"
bash -c "$BUILD" || { echo "the good commit cannot be built" >&2; exit 2; }
status=0
LLMBENCH_WRITE_BASELINE=1 bash -c "$GATES" || status=$?
[[ $status == 77 && -s $LLMBENCH_BISECT_GOOD ]] ||
    { echo "the good commit was not measured: its gates ended with $status" >&2; exit 2; }

git bisect start "$bad" "$good" > "$work/log"
status=0
# shellcheck disable=SC2016  # the inner shell expands them
LLMBENCH_BISECT=$what git bisect run bash -c 'bash -c "$BUILD" || exit 125; exec bash -c "$GATES"' \
    > "$work/run" 2>&1 || status=$?
cat "$work/run"
if grep -q ' is the first bad commit$' "$work/run"; then exit 0; fi
if grep -q "only 'skip'ped commits left" "$work/run"; then exit 1; fi
exit 2
