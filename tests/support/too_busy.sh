# shellcheck shell=bash
# was_too_busy LOG: the machine kept the client of a gate in it from sending or reading in time, so
# that the gate was invalid, or measured a repeat again. That tells of the machine, and of neither
# the server nor the gate: it shows nothing, which ci/test.sh counts by this line.
was_too_busy() { tr -s ' \n' ' ' < "$1" | grep -Eq "NOT OK: client|measured again: client|client: it lost|client: rank [0-9]+ of [0-9]+ on [^ ]+ began [^ ]+ m?s (late|early)"; }
stalled() { echo "stalled by the machine: $1"; }
