#!/usr/bin/env bash
# Starts one server in the foreground: tests/reality/start.sh BUILD_DIR NAME PORT [normal|eos]
set -euo pipefail
build=${1:?usage: start.sh BUILD_DIR NAME PORT [normal|eos]}
# shellcheck source=tests/reality/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
take "$2"
export HF_HUB_OFFLINE=1   # nothing is to be had from a hub, and nothing is asked of one
start "$3" "${4:-normal}"
