#!/usr/bin/env bash
# The history of the main branch, on a branch of its own beside the code. Three commands:
#   history.sh fetch REMOTE    $LLMBENCH_HISTORY_DIR becomes what the branch of REMOTE has; nothing
#                              that lay there, and nothing of the commit under test, is read. Without
#                              that branch there is no such folder
#   history.sh push REMOTE     what gates have added there is pushed. Others may have pushed meanwhile:
#                              theirs is kept, and the push is tried five times
#   history.sh main REMOTE     says the name of the default branch
# The branch is $HISTORY_BRANCH, default perf-history. Files are added to it, never edited. REMOTE is a
# URL, a path with a slash, or the name of a remote. A token comes in HISTORY_TOKEN, for the user
# HISTORY_USER (default x-access-token), or in the URL: git gets it from a file that others cannot read.
set -euo pipefail
command=${1:?usage: history.sh fetch|push|main REMOTE}
remote=${2:?usage: history.sh fetch|push|main REMOTE}
branch=${HISTORY_BRANCH:-perf-history}
token=${HISTORY_TOKEN:-} user=${HISTORY_USER:-x-access-token}
unset HISTORY_TOKEN HISTORY_USER
export GIT_TERMINAL_PROMPT=0
# A red line where gates are red for it, and a notice where a run that should add to it does not.
fail() { echo "${GITHUB_ACTIONS:+::error::}history.sh: $1" >&2; exit 3; }
note() { echo "${GITHUB_ACTIONS:+::notice::}history.sh: $1"; }

umask 077
private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT
[[ $remote == */* || $remote == *:* ]] || remote=$(git remote get-url "$remote")
# git repeats its URL in the arguments of a process of its own.
if [[ $remote =~ ^(https?://)([^/@]*)@(.*)$ ]]; then
    remote=${BASH_REMATCH[1]}${BASH_REMATCH[3]} of_url=${BASH_REMATCH[2]}
    if [[ ! $token && $of_url == *:* ]]; then user=${of_url%%:*} token=${of_url#*:}; fi
fi
with_token=()
if [[ $token && $remote =~ ^https?:// ]]; then
    host=${remote#*://} host=${remote%%:*}://${host%%/*}
    printf 'username=%s\npassword=%s\n' "$user" "$token" > "$private/credentials"
    # Without the empty header that of actions/checkout goes along, and GitHub refuses two of them.
    with_token=(-c "http.$remote.extraheader=" -c "credential.$host.helper="
        -c "credential.$host.helper=!f() { cat '$private/credentials'; }; f")
fi
git() { command git -c user.name=llmbench -c user.email=llmbench@localhost "${with_token[@]}" "$@"; }
in_folder() { git -C "$folder" "$@"; }

run() {
    case $command in
    main)
        git ls-remote --symref "$remote" HEAD | sed -n 's#^ref: refs/heads/\(.*\)[[:space:]]HEAD$#\1#p'
        return
        ;;
    esac
    folder=${LLMBENCH_HISTORY_DIR:?it must name a folder of its own}
    case $command in
    fetch)
        if [[ -e $folder && ! -e $folder/.git/of-llmbench && $(ls -A "$folder") ]]; then
            fail "LLMBENCH_HISTORY_DIR=$folder holds other files: name a folder of its own"
        fi
        rm -rf "$folder"
        status=0
        git ls-remote --exit-code --heads "$remote" "refs/heads/$branch" > /dev/null || status=$?
        case $status in
        0)
            git clone --quiet --depth 1 --single-branch --branch "$branch" "$remote" "$folder"
            in_folder remote remove origin
            : > "$folder/.git/of-llmbench"  # a later fetch may take it away
            ;;
        2) echo "history.sh: there is no branch $branch yet" ;;
        *) fail "the branch $branch cannot be fetched" ;;
        esac
        ;;
    push)
        [[ -d $folder ]] || { note "nothing was added: no gate of this run was one to keep"; exit 0; }
        if [[ ! -e $folder/.git ]]; then
            git init --quiet --initial-branch="$branch" "$folder"
            : > "$folder/.git/of-llmbench"
        fi
        in_folder add --all -- .
        if in_folder rev-parse --quiet --verify HEAD > /dev/null &&
            ! in_folder diff --cached --quiet --no-renames --diff-filter=a; then
            fail "files of a history are only added, and these are changed: $(
                in_folder diff --cached --no-renames --diff-filter=a --name-only | head -n 5 | tr '\n' ' ')"
        fi
        if [[ -z $(in_folder status --porcelain) ]]; then
            note "nothing was added: no gate of this run was one to keep"
            exit 0
        fi
        in_folder commit --quiet --message "Add what ${GITHUB_SHA:-${CI_COMMIT_SHA:-${GIT_COMMIT:-gates}}} measured"
        for try in 1 2 3 4 5; do
            if in_folder push --quiet "$remote" "HEAD:refs/heads/$branch"; then exit 0; fi
            sleep "$((try - 1)).$((RANDOM % 10))"  # those that push at one time do not try again at one
            in_folder fetch --quiet "$remote" "refs/heads/$branch" || continue
            in_folder rebase --quiet FETCH_HEAD || { in_folder rebase --abort; fail "what was added is there already, in other words"; }
        done
        fail "the branch $branch could not be pushed in five tries"
        ;;
    *) fail "$command is no command: fetch, push or main" ;;
    esac
}
run
