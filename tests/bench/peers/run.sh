#!/usr/bin/env bash
# The comparison: bash tests/bench/peers/run.sh [OPTION...] [ROW...]   (peers.py has both)
# It needs root, for CPU times are those of a control group, and what setup.sh installs. BUILD_DIR as there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$here/peers.py" "${BUILD_DIR:-$here/../../../build/peers}" "$@"
