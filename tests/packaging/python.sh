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
    if "$candidate" -c 'import pytest' 2> /dev/null; then python=$candidate && break; fi
done
if [[ ! $python ]]; then
    echo "no pytest here (python3-pytest): nothing shows its recipe"
    exit 77
fi
PYTHONPATH=$("$work/venv/bin/python" -c 'import llmbench, os; print(os.path.dirname(os.path.dirname(llmbench.__file__)))')
export PYTHONPATH PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
ends 0 '2 passed' "$python" -m pytest -q -p no:cacheprovider --junitxml=all.xml recipes  # with a server of its own
python3 - "$work/all.xml" << 'END' || die "junit.xml has not both: pytest's tests, and the objectives of the gates"
import sys
import xml.etree.ElementTree as xml
names = [c.get("name") for c in xml.parse(sys.argv[1]).getroot().iter("testcase")]
assert any(n.startswith("test_gate[") for n in names), names
assert any("p90(ttft) <= 2 s" in n for n in names) and any("p50(e2e) <= 5 s" in n for n in names), names
END
# A miss, an inconclusive gate (its few requests cannot show so low an error rate), a rehearsal, and a file that is refused.
sed -i 's/mean(tpot) <= 200 ms/mean(tpot) <= 0.1 ms/; s/"p50(e2e) <= 5 s"/"error_rate <= 0.5 %"/' "$work/recipes/gates.toml"
ends 1 '1 failed, 1 xfailed' "$python" -m pytest -q -p no:cacheprovider recipes
LLMBENCH_REHEARSE=1 ends 0 '2 skipped' "$python" -m pytest -q -p no:cacheprovider recipes
echo 'rte = 8' >> "$work/recipes/gates.toml"
ends 2 'rte is no key of a gate, is rate meant' "$python" -m pytest -q -p no:cacheprovider recipes
