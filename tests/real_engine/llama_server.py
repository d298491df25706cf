"""Runs llama.cpp's own server, which the wheel xllamacpp has as a library.

  python llama_server.py -m MODEL [FLAG...]    the flags are llama-server's
"""
import argparse
import signal

import xllamacpp

flags = argparse.ArgumentParser()
flags.add_argument("-m", dest="model", required=True)
flags.add_argument("--host", default="127.0.0.1")
flags.add_argument("--port", type=int, default=8080)
flags.add_argument("-np", dest="slots", type=int, default=1)
flags.add_argument("-c", dest="context", type=int, default=2048, help="of all slots together")
flags.add_argument("-t", dest="threads", type=int, default=1)
flags.add_argument("-tb", dest="batch_threads", type=int, default=1)
flags.add_argument("--metrics", action="store_true")
flags.add_argument("--no-cache-prompt", dest="cache", action="store_false")
given = flags.parse_args()

params = xllamacpp.CommonParams()
params.model.path = given.model
params.hostnames = [given.host]
params.port = given.port
params.n_parallel = given.slots
params.n_ctx = given.context
params.cpuparams.n_threads = given.threads
params.cpuparams_batch.n_threads = given.batch_threads
params.endpoint_metrics = given.metrics
params.cache_prompt = given.cache
server = xllamacpp.Server(params)    # answers in threads of its own until it is collected
while True:
    signal.pause()
