#!/usr/bin/env bash
# The wheel of the program, installed from its file into an empty environment: it runs gates, and so do the
# recipes for unittest and pytest in examples/python. The image's layers, if the program is static.
#   tests/packaging/python.sh PROGRAM [WHEEL]
# Exits with 77 where Python cannot make an environment (Debian: python3-venv), or has no pytest, Debian's
# (python3-pytest) or python3's.
set -euo pipefail
program=$(realpath "${1:?usage: python.sh PROGRAM [WHEEL]}")
cd "$(dirname "$0")/../.."
top=$PWD
work=$(mktemp -d)
server=
trap 'kill $server 2> /dev/null || true; rm -rf "$work"' EXIT
unset "${!LLMBENCH_@}" "${!GITHUB_@}" PYTHONPATH
die() { printf 'python.sh: %s\n' "$*" >&2; exit 1; }
# shellcheck source=ci/common.sh
version=$(source ci/common.sh && version)

wheel=${2:-}
if [[ ! $wheel ]]; then
    wheel=$(python3 ci/packaging/wheel.py "$program" "$work")
    mkdir "$work/again"
    cmp "$wheel" "$(python3 ci/packaging/wheel.py "$program" "$work/again")" || die "the same program gives another wheel"
fi
echo "ok: $(basename "$wheel")"
if [[ $wheel == *manylinux* ]]; then bash ci/packaging/image.sh "$program"; fi  # static
echo "no program" > "$work/text"
python3 ci/packaging/wheel.py "$work/text" "$work" 2> "$work/told" && die "a text becomes a wheel"
grep -q 'text is no program of a 64-bit Linux' "$work/told" || die "$(< "$work/told")"

python3 -m zipfile -e "$wheel" "$work/unpacked"  # keeps no modes
status=0
PYTHONPATH=$work/unpacked python3 -m llmbench --version > "$work/told" 2>&1 || status=$?
[[ $status == 2 && $(< "$work/told") == "llmbench: $work/unpacked/llmbench/bin/llmbench may not be executed, "*"chmod +x"* ]] ||
    die "unpacked without modes it ends with $status: $(< "$work/told")"

if ! python3 -c 'import ensurepip, venv' 2> /dev/null; then
    echo "python3 has no venv: nothing shows that the wheel can be installed"
    exit 77
fi
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-index --disable-pip-version-check "$wheel"
[[ $("$work/venv/bin/llmbench" --version) == "llmbench $version" ]] || die "the console script is not of $version"
[[ $("$work/venv/bin/python" -m llmbench --version) == "llmbench $version" ]] || die "python -m llmbench is none"
installed=$("$work/venv/bin/python" -c 'import llmbench; print(llmbench.path())')
cmp "$installed" "$program" || die "llmbench.path() is another program"
echo "ok: installed into an empty environment"

: > "$work/server"  # the shell of the background may come to it late
"$work/venv/bin/llmbench" serve --slots 32 --port 0 > "$work/server" &
server=$!
for ((tries = 0; tries < 300; ++tries)); do
    url=$(sed -n 's/^listening on //p' "$work/server")
    if [[ $url ]] || ! kill -0 "$server" 2> /dev/null; then break; fi
    sleep 0.1
done
[[ $url ]] || die "llmbench serve of the wheel does not listen"
# ends STATUS TEXT COMMAND...: so it does, and says so
ends() {
    local status=0
    (cd "$work" && "${@:3}") > "$work/log" 2>&1 || status=$?
    if ((status != $1)) || ! grep -qE -- "$2" "$work/log"; then
        tail -n 40 "$work/log"
        die "${*:3} ends with $status, not with $1, or does not say: $2"
    fi
    echo "ok: $2"
}
ends 1 'FAIL +mean\(tpot\)' "$work/venv/bin/llmbench" run --url "$url" --users 4 --requests 40 --output-tokens 8 \
    --slo 'mean(tpot) <= 0.1 ms'
cp -r "$top/examples/python" "$work/recipes"
cd "$work/recipes"
LLMBENCH_URL=$url ends 0 '^OK' "$work/venv/bin/python" -m unittest discover -s recipes -p unittest_gates.py

python=
for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import pytest' 2> /dev/null; then python=$(command -v "$candidate") && break; fi
done
if [[ ! $python ]]; then
    echo "no pytest here (python3-pytest): nothing shows its recipe"
    exit 77
fi
PYTHONPATH=$("$work/venv/bin/python" -c 'import llmbench, os; print(os.path.dirname(os.path.dirname(llmbench.__file__)))')
# shellcheck disable=SC2031  # the version alone is read in a subshell
export PYTHONPATH PATH="$work/venv/bin:$PATH"
pytest() { "$python" -m pytest -q -p no:cacheprovider "$@"; }
export -f pytest
export python
# gates STATUS TEXT [ARGUMENT...]: of the recipe, with the plugin that the wheel brings
gates() { ends "$1" "$2" bash -c 'cd recipes && pytest "$@"' _ "${@:3}"; }
gates 0 '2 passed' --junitxml=all.xml  # with a server of its own
gates 0 '2 passed' --import-mode=importlib
# Today's gates alone are in junit.xml, and a file of gates that nobody names is left alone.
cp "$work/recipes/llmbench-report/gates-0/junit.xml" "$work/old.xml"
gates 0 '1 passed' 'gates.toml::chat' --junitxml=one.xml
python3 - "$work/recipes" << 'END' || die "junit.xml has not both: pytest's tests, and the objectives of the gates that ran"
import sys
import xml.etree.ElementTree as xml
def names(file):
    return [c.get("name") for c in xml.parse(f"{sys.argv[1]}/{file}").getroot().iter("testcase")]
both, one = names("all.xml"), names("one.xml")
assert "chat" in both and "eight users" in both, both
assert any("p90(ttft) <= 2 s" in n for n in both) and any("p50(e2e) <= 5 s" in n for n in both), both
assert any("p90(ttft) <= 2 s" in n for n in one) and not any("p50(e2e) <= 5 s" in n for n in one), one
END
mkdir "$work/elsewhere"
cp "$work/recipes/gates.toml" "$work/elsewhere"
ends 5 'no tests ran' bash -c 'cd elsewhere && pytest'
# A miss, an inconclusive gate (its few requests cannot show so low an error rate), a rehearsal.
sed -i 's/mean(tpot) <= 200 ms/mean(tpot) <= 0.1 ms/; s/"p50(e2e) <= 5 s"/"error_rate <= 0.5 %"/' "$work/recipes/gates.toml"
gates 1 '1 failed, 1 xfailed'
# A plugin that runs red tests again, as pytest-rerunfailures does, leaves gates alone.
cat > "$work/recipes/again.py" << 'END'
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        print("run again:", item.name)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
END
cat > "$work/recipes/test_again.py" << 'END'
def test_again():
    pass
END
PYTHONPATH=$PYTHONPATH:$work/recipes gates 1 'run again: test_again' -s -p again
grep -q 'run again: chat' "$work/log" && die "a red gate is run again"
rm "$work/recipes/again.py" "$work/recipes/test_again.py"
# Only pytest starts its server, so its command runs the gate again.
server_of_all="$work/venv/bin/llmbench serve --port {port}"
# shellcheck disable=SC2016  # the shell that bash starts expands it
ends 1 'FAIL +mean\(tpot\)' bash -c 'cd recipes && pytest gates.toml::chat --llmbench-server "$1"' _ "$server_of_all"
again=$(sed -n 's/^report: .*; run again: //p' "$work/log")
[[ $again == "pytest gates.toml::chat --llmbench-server '$server_of_all'" ]] || die "run again: $again"
ends 1 'FAIL +mean\(tpot\)' bash -c "cd recipes && $again"
LLMBENCH_REHEARSE=1 gates 0 '2 skipped'
# A server that ends at once is told at once, with what it said.
gates 1 'the server has ended with 7: ' --llmbench-server 'sh -c "echo no such model; exit 7" {port}'
grep -q 'no such model' "$work/log" || die "what the server said is not told"
# A file that is refused, and one that no model can have.
echo 'rte = 8' >> "$work/recipes/gates.toml"
gates 2 'rte is no key of a gate, is rate meant'
if "$python" -c 'import xdist' 2> /dev/null; then
    sed -i '/^rte/d; s/mean(tpot) <= 0.1 ms/mean(tpot) <= 200 ms/' "$work/recipes/gates.toml"
    gates 0 '1 passed, 1 xfailed' -n 2
fi
