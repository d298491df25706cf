# shellcheck shell=bash
# was_too_busy LOG: the machine kept the client of a gate in it from sending or reading in time, so
# that the gate was invalid, or measured a repeat again. That tells of the machine, and of neither
# the server nor the gate.
was_too_busy() { grep -Eq "NOT OK: client|measured again: client" "$1"; }
