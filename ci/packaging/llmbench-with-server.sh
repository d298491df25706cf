#!/bin/sh
# Runs gates beside a server, for llmbench_add_gate(): see run_gates.sh, which does all of it.
#   llmbench-with-server.sh READY_URL SECONDS GATES SERVER [ARGUMENT...]
# LLMBENCH_URL and LLMBENCH_REPORT_DIR are in the environment.
set -eu
here=$(dirname "$0")
[ -e "$here/run_gates.sh" ] || here=$here/../github
command -v bash > /dev/null || { echo "llmbench_add_gate: SERVER_COMMAND needs bash, which is not installed"; exit 2; }
# shellcheck disable=SC2016,SC2089,SC2090  # run_gates.sh runs it
GATES='exec "$GATE_PROGRAM"' GATE_PROGRAM=$3 READY_PATH=$1 READY_SECONDS=$2
# shellcheck disable=SC2090
export GATES GATE_PROGRAM READY_PATH READY_SECONDS
unset SERVER BASELINE_SERVER SKIPPED GITHUB_OUTPUT
shift 3
exec bash "$here/run_gates.sh" "$@"
