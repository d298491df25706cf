#!/usr/bin/env python3
"""Ray Serve LLM with one replica of vLLM on the CPU, in the foreground: ray_serve.py MODEL NAME CONTEXT PORT"""
import sys
import time

import ray
from ray import serve
from ray._private import services
from ray.serve._private import api
from ray.serve.llm import LLMConfig, build_openai_app
from ray.serve.llm.ingress import OpenAiIngress


class Ingress(OpenAiIngress):
    """Its own lists a model before there is an engine; here what tells of one waits for that."""

    async def model(self, model: str):
        await self._default_serve_handles[model].check_health.remote()
        return await super().model(model)


def wait_longer(seconds):
    """Ray gives the start of its processes 30 s, and Serve that of its proxy 60 s: no variable says more."""
    ask = services.get_node

    def get_node(*of):
        until = time.monotonic() + seconds
        while True:
            try:
                return ask(*of)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    services.get_node = get_node
    api.HTTP_PROXY_TIMEOUT = seconds


def main():
    model, name, context, port = sys.argv[1:]
    config = LLMConfig(
        model_loading_config={"model_id": name, "model_source": model},
        accelerator_config={"kind": "cpu"},
        engine_kwargs={"max_model_len": int(context), "enforce_eager": True,
                       "enable_prompt_tokens_details": True},
        deployment_config={"autoscaling_config": {"min_replicas": 1, "max_replicas": 1}})
    wait_longer(600)
    # Places for its actors, which mostly wait.
    ray.init(address="local", num_cpus=8, include_dashboard=False, object_store_memory=200 * 2**20)
    serve.start(http_options={"host": "127.0.0.1", "port": int(port)})
    serve.run(build_openai_app({"llm_configs": [config],
                                "ingress_cls_config": {"ingress_cls": Ingress}}))
    while True:
        time.sleep(1)   # Ray's own handler of SIGTERM ends its processes


if __name__ == "__main__":
    main()
