#!/usr/bin/env bash
# As start.sh, but once there is a file BUILD_DIR/NAME/kill all of it is killed at once.
set -euo pipefail
build=${1:?usage: killed.sh BUILD_DIR NAME PORT}
# shellcheck source=tests/reality/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
take "$2"
rm -f "$home/kill"
setsid bash "$reality/start.sh" "$@" &
group=$!
# with_children PID: some of them are in process groups of their own
with_children() {
    local child
    echo "$1"
    grep -ls "^PPid:[[:space:]]$1\$" /proc/[0-9]*/status | cut -d / -f 3 |
        while read -r child; do with_children "$child"; done
}
# shellcheck disable=SC2046  # each word is a process
trap 'kill -KILL -- -$group $(with_children "$group") 2> /dev/null' EXIT
trap 'exit 1' TERM INT
until [[ -e $home/kill ]]; do sleep 0.1; done
