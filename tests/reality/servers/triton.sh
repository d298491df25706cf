# shellcheck shell=bash disable=SC2034,SC2154  # read by those who source it
# triton_words.py streams words through Triton's own generate_stream; no model is behind it. The
# package has Triton 2.51 in it.
title="Triton, by pytriton, with a decoupled model that streams words"
version=0.7.0
size="310 MB"
apis="triton"
model=tiny
ready=/v2/models/tiny/ready
lengths=forced
context=2048
page=told         # it is on a port of its own
gauges=queued
whole=''          # generate is for models that give one answer each
ends=''           # words do not end by themselves
# It looks for libpython3.N.so.1.0, which Debian has, and for a standard library as old as its own.
python=">=3.10,<3.11.6"

install() { venv_with "nvidia-pytriton==$version"; }

start() {
    local grpc metrics
    grpc=$(free_port)
    metrics=$(free_port)
    echo "http://127.0.0.1:$metrics/metrics" > "$home/page"
    # A folder of its own for what it unpacks, which it is not always given the time to remove.
    export PYTRITON_HOME=$home/work
    exec "$home/venv/bin/python" "$reality/servers/triton_words.py" "$1" "$grpc" "$metrics"
}
