#!/bin/sh
# Starts llama.cpp's server, which setup.sh has put into $MODELS beside the models, or $LLAMA_SERVER:
# --port P --parallel N --threads T [--model FILE]. Of a flag given twice the later wins.
# $MORE_OPTIONS has flags of llama-server.
model=$MODELS/tiny.gguf port=8080 parallel=8 threads=1
while [ $# -gt 1 ]; do
    case $1 in
        --model) model=$2 ;;
        --port) port=$2 ;;
        --parallel) parallel=$2 ;;
        --threads) threads=$2 ;;
        *) echo "start.sh: unknown flag $1" >&2; exit 2 ;;
    esac
    shift 2
done
# -c is the total, shared by the slots.
# shellcheck disable=SC2086  # several options
set -- -m "$model" --host 127.0.0.1 --port "$port" -np "$parallel" -c $((parallel * 2048)) \
    -t "$threads" -tb "$threads" --metrics ${MORE_OPTIONS:-}
if [ "${LLAMA_SERVER:-}" ]; then exec "$LLAMA_SERVER" "$@"; fi
exec "$MODELS/llama/bin/python" "$(dirname "$0")/llama_server.py" "$@"
