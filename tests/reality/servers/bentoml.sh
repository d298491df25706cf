# BentoML: bentoml_words.py streams words, as bare text and as an OpenAI-compatible server. No model is behind it.
title="BentoML"
version="1.4.39"
size="115 MB"
apis="plain_text openai_chat openai_completions"
model="tiny"
ready="/livez"
lengths=forced
context=2048
key=yes
page=/metrics
cache=""
extra_body='{}'

install() { venv_with "bentoml==$version"; }

start() {
    export BENTOML_HOME=$home/bentoml BENTOML_DO_NOT_TRACK=True
    exec "$home/venv/bin/bentoml" serve bentoml_words:Words --working-dir "$here/servers" --host 127.0.0.1 --port "$1"
}
