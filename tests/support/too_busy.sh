# shellcheck shell=bash
# was_too_busy LOG: a gate in it was invalid because the machine kept the client from sending or
# reading in time. That tells of the machine, and of neither the server nor the gate.
was_too_busy() { grep -q "NOT OK: client" "$1"; }
