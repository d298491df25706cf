"""A streaming client as the usual Python benchmark writes it: one task a user, a line of the body at
a time, json.loads of each event. Prints requests, events, CPU seconds and elapsed seconds.

    aiohttp_client.py URL STREAMS TOKENS SECONDS [LOG]

LOG: a file that gets "index first_ns last_ns" of each request on the monotonic clock.
"""
import asyncio
import json
import sys
import time

import aiohttp

url, streams, tokens, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
log = []
next_id = 0


async def one_request(session):
    global next_id
    index, next_id = next_id, next_id + 1
    body = {"model": "flood", "messages": [{"role": "user", "content": "Hello"}], "stream": True,
            "max_tokens": tokens}
    events, first, last, text = 0, 0, 0, ""
    headers = {"X-Request-Id": f"aiohttp-{index}"}
    # The flood server looks for the field as our client writes it, without a space.
    data = json.dumps(body, separators=(",", ":"))
    async with session.post(url + "/v1/chat/completions", data=data, headers=headers) as response:
        async for line in response.content:
            line = line.strip()
            if not line:
                continue
            chunk = line.decode("utf-8").removeprefix("data: ")
            if chunk == "[DONE]":
                continue
            now = time.monotonic_ns()
            choices = json.loads(chunk)["choices"]
            if choices and (content := choices[0]["delta"].get("content")):
                if not events:
                    first = now
                last = now
                events += 1
                text += content
    log.append((index, first, last))
    return events


async def main():
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=3600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout,
                                     read_bufsize=2**20) as session:
        began, cpu = time.monotonic(), time.process_time()

        async def user():
            events = 0
            while time.monotonic() - began < seconds:
                events += await one_request(session)
            return events

        events = sum(await asyncio.gather(*(user() for _ in range(streams))))
        print(len(log), events, time.process_time() - cpu, time.monotonic() - began)


asyncio.run(main())
if len(sys.argv) > 5:
    with open(sys.argv[5], "w") as f:
        for index, first, last in log:
            print(index, first, last, file=f)
