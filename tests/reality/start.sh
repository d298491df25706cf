#!/usr/bin/env bash
# Starts one server in the foreground: tests/reality/start.sh BUILD_DIR NAME PORT [normal|eos|reasoning|API]
set -euo pipefail
build=${1:?usage: start.sh BUILD_DIR NAME PORT [normal|eos|reasoning|API]}
# shellcheck source=tests/reality/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
take "$2"
export HF_HUB_OFFLINE=1   # nothing is to be had from a hub, and nothing is asked of one
if [[ $behind ]]; then
    # The one that answers: ready before the proxy is asked anything, and ended with it.
    at=$(free_port)
    env -u API_KEY bash "${BASH_SOURCE[0]}" "$build" "$behind" "$at" "${4:-normal}" &
    export UPSTREAM=http://127.0.0.1:$at
    until curl -sf -o /dev/null "$UPSTREAM$(take "$behind" && echo "$ready")"; do
        kill -0 $! 2> /dev/null || exit 1
        sleep 0.2
    done
fi
start "$3" "${4:-normal}"
