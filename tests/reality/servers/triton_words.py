"""Triton with a decoupled model in Python that streams words: no model, one word every few milliseconds.

usage: triton_words.py HTTP_PORT GRPC_PORT METRICS_PORT
The model has the inputs and the output of Triton's backends for vLLM and TensorRT-LLM, so that
POST /v2/models/tiny/generate_stream is what is sent to those.
"""
import itertools
import sys
import time

import numpy
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

WORDS = "the sea was calm and the wind came from the west over the long white beach".split()
CONTEXT = 2048


def answer(requests):
    """One word after the other, for the one request that comes without batching."""
    asked = requests[0].data
    prompt = asked["text_input"].item().decode()
    count = int(asked["max_tokens"].item())
    if len(prompt.split()) + count > CONTEXT:
        raise ValueError(f"{len(prompt.split())} tokens of prompt and {count} of answer are more than {CONTEXT}.")
    time.sleep(0.02)
    for word in itertools.islice(itertools.cycle(WORDS), count):
        yield [{"text_output": numpy.array([(word + " ").encode()])}]
        time.sleep(0.004)


def main():
    http, grpc, metrics = (int(port) for port in sys.argv[1:4])
    config = TritonConfig(http_address="127.0.0.1", http_port=http, grpc_address="127.0.0.1",
                          grpc_port=grpc, metrics_address="127.0.0.1", metrics_port=metrics)
    with Triton(config=config) as triton:
        triton.bind(
            model_name="tiny",
            infer_func=answer,
            inputs=[Tensor(name="text_input", dtype=bytes, shape=(1,)),
                    Tensor(name="max_tokens", dtype=numpy.int32, shape=(1,))],
            outputs=[Tensor(name="text_output", dtype=bytes, shape=(1,))],
            config=ModelConfig(batching=False, decoupled=True),
        )
        triton.serve()


if __name__ == "__main__":
    main()
