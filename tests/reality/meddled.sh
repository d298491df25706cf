#!/usr/bin/env bash
# Starts llama.cpp's server behind meddler.py: meddled.sh PORT token|clock|... with $MODELS, as start.sh of real_engine has it
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
behind=$(python3 "$here/../support/free_ports.py" 1)
"$here/../real_engine/start.sh" --port "$behind" --parallel 1 &
exec python3 "$here/meddler.py" "$1" "$behind" "$2"
