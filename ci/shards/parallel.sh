#!/usr/bin/env bash
# GNU parallel sends one load from several machines, or from several processes of this one:
#   LLMBENCH_URL=http://server:8000 parallel.sh 4                          four processes here
#   LLMBENCH_URL=http://server:8000 parallel.sh 3 --sshlogin a,b,c         one on each of three
#   llmbench merge shards/shard-* --slo 'p90(ttft) <= 300 ms'
# The program is ./gates, in a directory that all of them see, and so are the records. A shard that
# was measured ends with 77: it judges nothing.
set -euo pipefail
count=${1:?usage: parallel.sh COUNT [OPTION OF PARALLEL...]}
export LLMBENCH_START_AT=$(($(date +%s) + ${AHEAD:-20}))
export GATES=${GATES:-$PWD/gates} GATE=${GATE:-chat} SHARDS=${SHARDS:-$PWD/shards}
export SHARDS_IN_ALL=$count
run_shard() {
    LLMBENCH_SHARD=$1/$SHARDS_IN_ALL LLMBENCH_REPORT_DIR=$SHARDS/shard-$1 \
        "$GATES" --test-case="$GATE" || [[ $? == 77 ]]
}
export -f run_shard
parallel --jobs "$count" --halt soon,fail=1 "${@:2}" \
    --env run_shard,GATES,GATE,SHARDS,SHARDS_IN_ALL,LLMBENCH_URL,LLMBENCH_START_AT \
    run_shard < <(seq 0 $((count - 1)))
