# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# bentoml_words.py streams words, as bare text and as an OpenAI-compatible server; no model is behind
# it. BentoML has no key of its own: the one here is checked by the service.
title="BentoML"
version="1.4.40"
size="115 MB"
apis="openai_chat openai_completions plain_text"
model="tiny"
ready="/livez"
lengths=forced
context=2048
key=yes
page=""       # it has one, of its own names: none that the table of servers knows
cache=""
ends=""       # words do not end by themselves

install() { venv_with "bentoml==$version"; }

start() {
    export BENTOML_HOME=$home/bentoml BENTOML_DO_NOT_TRACK=True
    exec "$home/venv/bin/bentoml" serve bentoml_words:Words --working-dir "$reality/servers" \
        --host 127.0.0.1 --port "$1"
}
