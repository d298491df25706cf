"""A BentoML service that streams words: no model, one word every few milliseconds.

POST /generate is BentoML's own way to stream: an API that yields strings becomes a body of bare text.
POST /v1/chat/completions and /v1/completions are an ASGI application mounted into the same service, as
BentoML's own examples for LLMs do it.
"""
import asyncio
import itertools
import json
import os
import time
import typing
import uuid

import bentoml
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

WORDS = "the sea was calm and the wind came from the west over the long white beach".split()
MODEL = "tiny"
CONTEXT = 2048
KEY = os.environ.get("API_KEY", "")


async def words(count):
    """A wait before the first word, shorter ones before the others."""
    await asyncio.sleep(0.02)
    for word in itertools.islice(itertools.cycle(WORDS), count):
        yield word + " "
        await asyncio.sleep(0.004)


def refused(status, why):
    return JSONResponse({"error": {"message": why, "type": "invalid_request_error", "code": status}}, status)


def asked(body):
    """The prompt's words and how many to answer."""
    if "messages" in body:
        prompt = " ".join(str(message["content"]) for message in body["messages"])
    else:
        prompt = str(body["prompt"])
    return len(prompt.split()), int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)


async def answer(request, chat):
    if KEY and request.headers.get("authorization") != "Bearer " + KEY:
        return refused(401, "Incorrect API key provided.")
    try:
        body = await request.json()
        prompt_tokens, count = asked(body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return refused(400, f"The body cannot be read: {error!r}")
    if body.get("model") != MODEL:
        return refused(404, f"The model `{body.get('model')}` does not exist.")
    if prompt_tokens + count > CONTEXT:
        return refused(400, f"{prompt_tokens} tokens of prompt and {count} of answer are more than {CONTEXT}.")

    head = {"id": "words-" + uuid.uuid4().hex, "created": int(time.time()), "model": MODEL}
    kind = "chat.completion" if chat else "text_completion"
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": count, "total_tokens": prompt_tokens + count}

    def event(choices, **more):
        fields = {**head, "object": kind + (".chunk" if chat else ""), "choices": choices, **more}
        return "data: " + json.dumps(fields) + "\n\n"

    async def events():
        if chat:
            yield event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        async for word in words(count):
            piece = {"delta": {"content": word}} if chat else {"text": word}
            yield event([{"index": 0, **piece, "finish_reason": None}])
        yield event([{"index": 0, **({"delta": {}} if chat else {"text": ""}), "finish_reason": "length"}])
        if (body.get("stream_options") or {}).get("include_usage"):
            yield event([], usage=usage)
        yield "data: [DONE]\n\n"

    if body.get("stream"):
        return StreamingResponse(events(), media_type="text/event-stream")
    text = "".join([word async for word in words(count)])
    piece = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return JSONResponse({**head, "object": kind, "usage": usage,
                         "choices": [{"index": 0, **piece, "finish_reason": "length"}]})


async def chat_completions(request):
    return await answer(request, True)


async def completions(request):
    return await answer(request, False)


async def models(_):
    return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "tests"}]})


openai = Starlette(routes=[
    Route("/chat/completions", chat_completions, methods=["POST"]),
    Route("/completions", completions, methods=["POST"]),
    Route("/models", models),
])


@bentoml.service(name="words", workers=1, traffic={"timeout": 120})
@bentoml.asgi_app(openai, path="/v1")
class Words:
    @bentoml.api
    async def generate(self, prompt: str, max_tokens: int = 128) -> typing.AsyncGenerator[str, None]:
        async for word in words(max_tokens):
            yield word
