#!/usr/bin/env bash
# The history of the main branch, on a branch of its own beside the code. Two commands:
#   history.sh fetch REMOTE    $LLMBENCH_HISTORY_DIR becomes what the branch of REMOTE has; nothing
#                              that lay there, and nothing of the commit under test, is read. Without
#                              that branch there is no such folder
#   history.sh push REMOTE     what gates have added there is pushed. Others may have pushed meanwhile:
#                              theirs is kept, and the push is tried five times
# The branch is $HISTORY_BRANCH, default perf-history. Files are added to it, never edited.
set -euo pipefail
command=${1:?usage: history.sh fetch|push REMOTE}
remote=${2:?usage: history.sh fetch|push REMOTE}
folder=${LLMBENCH_HISTORY_DIR:?it must name a folder of its own}
branch=${HISTORY_BRANCH:-perf-history}
export GIT_TERMINAL_PROMPT=0

fail() { echo "history.sh: $1" >&2; exit 3; }
in_folder() { git -C "$folder" -c user.name=llmbench -c user.email=llmbench@localhost "$@"; }

run() {
    case $command in
    fetch)
        rm -rf "$folder"
        status=0
        git ls-remote --exit-code --heads "$remote" "refs/heads/$branch" > /dev/null || status=$?
        case $status in
        0)
            git clone --quiet --depth 1 --single-branch --branch "$branch" "$remote" "$folder"
            git -C "$folder" remote remove origin  # its URL may hold a token, which gates could read
            ;;
        2) echo "history.sh: there is no branch $branch yet" ;;
        *) fail "the branch $branch cannot be fetched" ;;
        esac
        ;;
    push)
        [[ -d $folder ]] || { echo "history.sh: nothing was added"; exit 0; }
        [[ -e $folder/.git ]] || git init --quiet --initial-branch="$branch" "$folder"
        in_folder add --all -- .
        if in_folder rev-parse --quiet --verify HEAD > /dev/null &&
            ! in_folder diff --cached --quiet --no-renames --diff-filter=a; then
            fail "files of a history are only added, and these are changed: $(
                in_folder diff --cached --no-renames --diff-filter=a --name-only | head -n 5 | tr '\n' ' ')"
        fi
        if [[ -z $(in_folder status --porcelain) ]]; then echo "history.sh: nothing was added"; exit 0; fi
        in_folder commit --quiet --message "Add what ${GITHUB_SHA:-${CI_COMMIT_SHA:-${GIT_COMMIT:-gates}}} measured"
        for try in 1 2 3 4 5; do
            if in_folder push --quiet "$remote" "HEAD:refs/heads/$branch"; then exit 0; fi
            sleep "$((try - 1)).$((RANDOM % 10))"  # those that push at one time do not try again at one
            in_folder fetch --quiet "$remote" "refs/heads/$branch" || continue
            in_folder rebase --quiet FETCH_HEAD || { in_folder rebase --abort; fail "what was added is there already, in other words"; }
        done
        fail "the branch $branch could not be pushed in five tries"
        ;;
    *) fail "$command is no command: fetch or push" ;;
    esac
}
# git repeats URLs, and a token in one.
run 2>&1 | LC_ALL=C sed -E 's#://[^/@[:space:]]+@#://***@#g'
