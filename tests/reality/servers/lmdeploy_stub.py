#!/usr/bin/env python3
"""LMDeploy's own command line with an engine that needs no GPU in the place of TurboMind.

  lmdeploy_stub.py serve api_server FOLDER ...

A prompt takes a time for each of its tokens, and each token of an answer, which is a word by chance, a
step. As many run at once as there are slots; the others wait. Everything else is LMDeploy's: the API,
templates, the tokenizer, limits of length, stops, usage, and its page of metrics.
"""
import asyncio
import json
import pathlib
import random
import time

import lmdeploy.turbomind
from lmdeploy.cli import run
from lmdeploy.messages import (EngineEvent, EngineOutput, EventType, RequestMetrics, ResponseType,
                               ScheduleMetrics)

SLOTS = 4
PREFILL_S, STEP_S = 20e-6, 2e-3  # of a token


class Engine:
    @classmethod
    def from_pretrained(cls, folder, engine_config=None, **_):
        return cls(folder, engine_config)

    def __init__(self, folder, config):
        vocabulary = json.loads(pathlib.Path(folder, "tokenizer.json").read_text())["model"]["vocab"]
        space = "\u0120"  # as a byte-level BPE writes it
        self.words = [n for token, n in vocabulary.items() if token.startswith(space) and len(token) > 3]
        self.engine_config = config
        self.slots = asyncio.Semaphore(SLOTS)
        self.running = self.waiting = self.steps = 0

    def create_instance(self):
        return Instance(self)

    def get_schedule_metrics(self):
        return ScheduleMetrics(active_seqs=self.running, waiting_seqs=self.waiting,
                               cache_usage=self.running / SLOTS, scheduler_tick=self.steps)

    async def get_health_status(self):
        return {"alive": True, "message": "", "schedule_metrics": self.get_schedule_metrics()}

    def close(self):
        pass


class Instance:
    """What answers one request at a time."""

    def __init__(self, engine):
        self.engine = engine
        self.is_cancelled = False

    async def async_cancel(self, session_id=None):
        self.is_cancelled = True

    async def async_end(self, session_id):
        pass

    async def async_stream_infer(self, session_id, input_ids, gen_config=None, **_):
        engine, chance = self.engine, random.Random(len(input_ids))
        self.is_cancelled = False
        events = [EngineEvent(EventType.QUEUED, time.time())]
        engine.waiting += 1
        try:
            await engine.slots.acquire()
        finally:
            engine.waiting -= 1
        engine.running += 1
        try:
            events.append(EngineEvent(EventType.SCHEDULED, time.time()))
            await asyncio.sleep(PREFILL_S * len(input_ids))
            for left in reversed(range(gen_config.max_new_tokens)):
                await asyncio.sleep(STEP_S)
                engine.steps += 1
                status = (ResponseType.CANCEL if self.is_cancelled else
                          ResponseType.SUCCESS if left else ResponseType.FINISH)
                yield EngineOutput(status, [chance.choice(engine.words)],
                                   req_metrics=RequestMetrics(time.time(), events))
                events = []
                if self.is_cancelled:
                    break
        finally:
            engine.running -= 1
            engine.slots.release()


if __name__ == "__main__":
    lmdeploy.turbomind.is_available = lambda: True
    lmdeploy.turbomind.TurboMind = Engine
    run()
