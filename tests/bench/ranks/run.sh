#!/usr/bin/env bash
# What one rank of MPI costs when there are 1, 2 and 4 of them on this machine, each against a server
# process in a network namespace of its own, from an address of its own. Needs root (for the
# namespaces) and Open MPI.
#   tests/bench/ranks/run.sh [STREAMS] [SECONDS]        of each rank, 200 and 10
# LLMBENCH_PROGRAM is the program whose `serve` answers (build/program/llmbench).
set -euo pipefail
cd "$(dirname "$0")/../../.."
streams=${1:-200} seconds=${2:-10}
work=build/ranks program=${LLMBENCH_PROGRAM:-build/program/llmbench}
mkdir -p "$work"
[[ $work/load -nt llmbench.hpp ]] ||
    mpicxx.openmpi -std=c++20 -O2 -I. -DLLMBENCH_WITH_MPI tests/bench/ranks/load.cpp -o "$work/load" -pthread
export LLMBENCH_PROGRESS=off LLMBENCH_REPORT_DIR=$work/report
servers=()
leave() {
    ((${#servers[@]} == 0)) || kill "${servers[@]}" 2> /dev/null || true
    local i
    for i in 1 2 3 4; do ip netns del "llmbench$i" 2> /dev/null || true; done
}
trap leave EXIT
urls=() from=()
for i in 1 2 3 4; do
    ip netns add "llmbench$i"
    ip link add "bench$i" type veth peer name eth0 netns "llmbench$i"
    ip addr add "10.77.$i.1/24" dev "bench$i"
    ip link set "bench$i" up
    ip -n "llmbench$i" addr add "10.77.$i.2/24" dev eth0
    ip -n "llmbench$i" link set eth0 up
    ip -n "llmbench$i" link set lo up
    ip netns exec "llmbench$i" "$program" serve --port 0 --host "10.77.$i.2" --every 20ms \
        > "$work/server-$i.out" &
    servers+=($!)
    from+=("10.77.$i.1")
done
sleep 1
for i in 1 2 3 4; do urls+=("$(sed -n 's/^listening on //p' "$work/server-$i.out")"); done
export URLS="${urls[*]}" FROM="${from[*]}"
echo "| ranks | streams | events/s | busiest thread of a rank, % of a core | CPU an event, us | memory of a rank, MiB | starts within, us |"
echo "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
row() {
    python3 - "$LLMBENCH_REPORT_DIR/result.json" "$1" "$2" << 'END'
import json, sys
g = json.load(open(sys.argv[1]))["gates"][0]
d = g["candidate"]["repeats"][0]
window = (d["window_to_ns"] - d["window_from_ns"]) * 1e-9
rate = g["candidate"]["output_throughput"]
ranks = d.get("ranks", [])  # one rank alone is a run as any other
shares = [r["cpu_utilization"] for r in ranks] or [d["cpu_utilization"]]
memory = [r["memory_bytes"] / 1048576 for r in ranks]
starts = [1e6 * abs(r["off_s"]) for r in ranks]
print(f"| {sys.argv[2]} | {int(sys.argv[3]) * int(sys.argv[2])} | {rate:,.0f} | "
      f"{100 * min(shares):.0f} to {100 * max(shares):.0f} | {1e6 * sum(shares) / rate:.1f} | "
      + (f"{min(memory):.0f} to {max(memory):.0f} | {max(starts):.1f} |" if ranks else "| |"))
END
}
for ranks in 1 2 4; do
    mpirun.openmpi --allow-run-as-root --oversubscribe -n "$ranks" "$work/load" "$streams" "$seconds" > "$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; }
    row "$ranks" "$streams"
done
echo
echo "One rank, one core, by the number of streams:"
for each in 100 1000 10000; do
    mpirun.openmpi --allow-run-as-root --oversubscribe -n 1 "$work/load" "$each" "$seconds" > "$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; }
    row 1 "$each"
done
