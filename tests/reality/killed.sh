#!/usr/bin/env bash
# As start.sh, but some seconds after the server is ready all of it is killed at once.
set -euo pipefail
build=${1:?usage: killed.sh BUILD_DIR NAME PORT}
# shellcheck source=tests/reality/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
take "$2"
setsid bash "$reality/start.sh" "$@" &
group=$!
trap 'kill -KILL -- -$group 2> /dev/null' EXIT
trap 'exit 1' TERM INT
until curl -sf -o /dev/null "http://127.0.0.1:$3$ready"; do sleep 0.2; done
sleep "$lives"
