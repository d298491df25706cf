#!/usr/bin/env bash
# measure_rates.sh with a stand-in for llmbench_rates: what it measures, puts together, resumes and refuses.
set -euo pipefail
script=$(dirname "$0")/measure_rates.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RATES=$work/rates LOG=$work/log DIES_AT=
# A study of two tables with five rows, of which row 3 misses a bound.
cat > "$RATES" <<'END'
#!/usr/bin/env bash
shard=1 shards=1
for ((i = 1; i < $#; ++i)); do
    if [[ ${!i} == --shard ]]; then i=$((i + 1)) shard=${!i%/*} shards=${!i#*/}; fi
done
echo "$*" >> "$LOG"
if [[ ${HANGS:-} ]]; then
    echo "$$" > "$LOG.pid"
    exec sleep 600
fi
if [[ $shard == "$DIES_AT" ]]; then
    echo "the table"
    exit 3
fi
row=0
rows() {
    for ((i = 0; i < $1; ++i, ++row)); do
        if ((shards > 1)); then echo "[row $row]"; fi
        if ((row % shards != shard - 1)); then continue; fi
        if ((row == ${MISSED:-9})); then echo "NOT MET: row $row"; fi
        echo "| row $row |"
    done
}
echo "the table"
rows 2
echo "another"
rows 3
exit "$((row == ${MISSED:-9}))"
END
chmod +x "$RATES"
passed=0
is() {
    if [[ $2 != "$3" ]]; then
        printf 'NOT OK: %s\nis:\n%s\nshould be:\n%s\n' "$1" "$2" "$3"
        exit 1
    fi
    passed=$((passed + 1))
}
measured() { wc -l < "$LOG" | tr -d ' '; }
: > "$LOG"

# A shard that dies ends the script; begun again, it measures the others alone.
status=0
DIES_AT=3 bash "$script" "$work/out" setting > "$work/said" 2>&1 || status=$?
is "the exit status of a shard" "$status" 3
is "shards until then" "$(measured)" 3
is "what died is told" "$(tail -n 1 "$work/said")" \
    "llmbench_rates setting --trials 4000 --shard 3/6 ended with 3: "
bash "$script" "$work/out" setting > "$work/said"
is "shards of both" "$(measured)" 7
is "how many are there" "$(grep -c 'setting: about .* 2 of 6 shards are there' "$work/said")" 1
is "the shards together" "$(tail -n +2 "$work/out/setting.txt")" "$("$RATES" setting)"
is "their command" "$(sed -n '1s/: .*//p' "$work/out/setting.txt")" "# setting --trials 4000"

# What is there is not measured again, unless it is of another command or all is asked for again.
: > "$LOG"
bash "$script" "$work/out" setting > "$work/said"
is "nothing is left" "$(measured)" 0
is "no time is left" "$(tail -n 2 "$work/said" | head -n 1)" "all: about 0 CPU minutes"
TRIALS=40 JOBS=3 bash "$script" "$work/out" setting > /dev/null
is "other trials" "$(sort "$LOG" | head -n 1)" "setting --trials 40 --shard 1/6"
is "all of them" "$(measured)" 6
is "shards at the same time" "$(tail -n +2 "$work/out/setting.txt")" "$("$RATES" setting)"
: > "$LOG"
TRIALS=40 bash "$script" --again "$work/out" setting > /dev/null
is "all again" "$(measured)" 6

# A bound that is not met is named, and the other studies are measured.
status=0
MISSED=3 bash "$script" "$work/missed" pair > "$work/said" || status=$?
is "a bound is missed" "$status" 1
is "it is named" "$(tail -n 3 "$work/said" | sed "s|$work/||")" "missed/pair-fresh.txt:NOT MET: row 3
missed/pair-lasting.txt:NOT MET: row 3
bounds that are not met: pair-fresh pair-lasting"

# What is under way ends with the script.
HANGS=yes bash "$script" "$work/hangs" label > /dev/null 2>&1 &
until [[ -s $LOG.pid ]]; do sleep 0.1; done
kill "$!"
status=0
wait "$!" || status=$?
is "ended" "$status" 143
while kill -0 "$(< "$LOG.pid")" 2> /dev/null; do sleep 0.1; done

# Every study of the program and of the page has a row.
names=$(bash "$script" "$work/none" none 2>&1 || true)
for study in "$(dirname "$0")"/rates/*.cpp; do
    study=$(basename "$study" .cpp)
    if [[ $study == main ]]; then continue; fi
    is "$study" "$(grep -cE " $study(-| |\$)" <<< "$names")" 1
done
for wrong in "" "--trials" "$work/none none"; do
    status=0
    # shellcheck disable=SC2086  # two words are two arguments
    bash "$script" $wrong > /dev/null 2>&1 || status=$?
    is "refused: $wrong" "$status" 2
done
echo "measure_rates.sh: $passed passed"
