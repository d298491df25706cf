#!/usr/bin/env bash
# One comment on a pull request, which later runs write anew. From variables:
#   GH_TOKEN, REPOSITORY, NUMBER    who writes, and where: owner/name, and the pull request's number
#   ARTIFACT, RUN                   the artifact's name, which tells our comments apart, and the run's URL
#   SUMMARY                         the gates' summary.md, of which 64,000 bytes are told: a comment has
#                                   at most 65,536 characters
set -euo pipefail
mark="<!-- llmbench $ARTIFACT -->"
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
    echo "$mark"
    # A comment of an earlier run must not stay where this one was killed.
    if [[ -s $SUMMARY && ! -L $SUMMARY ]]; then head -c 64000 "$SUMMARY" | iconv -c -f utf-8 -t utf-8 || true
    else echo "**Nothing was shown: the gates left no summary.**"; fi
    echo
    echo "[The whole report]($RUN) is an artifact of this run."
} > "$body"
# Ours is the first comment that starts with our mark and was written with this token; a later run
# writes it anew. Anybody can write the mark.
# (sed reads to the end; head would end gh early, and with it this script.)
# shellcheck disable=SC2016  # the variables are GraphQL's
comment=$(gh api graphql --paginate -f owner="${REPOSITORY%/*}" -f name="${REPOSITORY#*/}" \
    -F number="$NUMBER" -f query='query($owner: String!, $name: String!, $number: Int!, $endCursor: String) {
        repository(owner: $owner, name: $name) { pullRequest(number: $number) {
          comments(first: 100, after: $endCursor) {
            nodes { databaseId body viewerDidAuthor } pageInfo { hasNextPage endCursor } } } } }' \
    --jq ".data.repository.pullRequest.comments.nodes[]
        | select(.viewerDidAuthor and (.body | startswith(\"$mark\"))) | .databaseId" | sed -n 1p)
if [[ $comment ]]; then
    gh api --method PATCH "repos/$REPOSITORY/issues/comments/$comment" -F "body=@$body" > /dev/null
else
    gh api --method POST "repos/$REPOSITORY/issues/$NUMBER/comments" -F "body=@$body" > /dev/null
fi
