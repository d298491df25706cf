#!/usr/bin/env bash
# Eight tasks of a Slurm array send one load, each leaves its records in a directory that all see:
#   export LLMBENCH_URL=http://server:8000 START_AT=$(($(date +%s) + 300))
#   sbatch --wait slurm.sh
#   llmbench merge shards/shard-* --slo 'p90(ttft) <= 300 ms'
# Yours to change: the number of tasks (numbered from 0), the cores of each, and the gate's name. All
# tasks must run by START_AT: give them a reservation, or a partition that is free. A shard that was
# measured ends with 77: it judges nothing.
#SBATCH --job-name=gates
#SBATCH --array=0-7
#SBATCH --nodes=1
#SBATCH --cpus-per-task=2
#SBATCH --exclusive
set -euo pipefail
: "${START_AT:?set it to a time in seconds since 1970, some minutes ahead}"
export LLMBENCH_SHARD=$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
export LLMBENCH_START_AT=$START_AT
export LLMBENCH_REPORT_DIR=${SHARDS:-shards}/shard-$SLURM_ARRAY_TASK_ID
"${GATES:-./gates}" --test-case="${GATE:-chat}" || [[ $? == 77 ]]
