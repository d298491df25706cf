#!/usr/bin/env python3
"""Keeps what a server says, byte for byte, as the tests replay it.

One file for each question: the status line, the headers and the body as they came from the socket.
A page of metrics keeps the families of the server's own, and of them what is read; its first line says so.
"""
import argparse
import json
import pathlib
import re
import socket
import urllib.parse

PROMPT = "the way home"
LIMIT_S = 60
PATHS = {
    "openai_chat": "/v1/chat/completions", "openai_completions": "/v1/completions",
    "tgi": "/generate_stream", "triton": "/v2/models/{model}/generate_stream",
    "ollama": "/api/chat", "ollama_generate": "/api/generate", "llama_cpp": "/completion",
    "sglang": "/generate", "plain_text": "/generate", "anthropic": "/v1/messages",
    "openai_embeddings": "/v1/embeddings", "rerank": "/v1/rerank",
}
WHOLE_PATHS = {"tgi": "/generate"}   # where an answer in one piece is had elsewhere
IN_ONE_PIECE = ("openai_embeddings", "rerank")
HERE = str(pathlib.Path(__file__).resolve().parents[2]).encode()
TABLE = (pathlib.Path(__file__).resolve().parents[2] / "src/core/server_metrics/server_names.hpp").read_text()
NOISE = ("python_", "process_", "go_", "promhttp_", "http_")


def body_of(api, model, stream, prompt=PROMPT, tokens=8, is_forced=True):
    chat = [{"role": "user", "content": prompt}]
    usage = {"stream_options": {"include_usage": True}} if stream else {}
    forced = {"ignore_eos": True, "temperature": 0} if is_forced else {"temperature": 0}
    return {
        "openai_chat": {"model": model, "messages": chat, "max_tokens": tokens, "stream": stream,
                        **usage, **forced},
        "openai_completions": {"model": model, "prompt": prompt, "max_tokens": tokens,
                               "stream": stream, **usage, **forced},
        "tgi": {"inputs": prompt, "parameters": {"max_new_tokens": tokens, "details": True}},
        "triton": {"text_input": prompt, "max_tokens": tokens, "stream": stream},
        "ollama": {"model": model, "messages": chat, "stream": stream,
                   "options": {"num_predict": tokens, "temperature": 0}},
        "ollama_generate": {"model": model, "prompt": prompt, "stream": stream,
                            "options": {"num_predict": tokens, "temperature": 0}},
        "llama_cpp": {"prompt": prompt, "n_predict": tokens, "stream": stream, **forced},
        "sglang": {"text": prompt, "stream": stream,
                   "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True}},
        "plain_text": {"prompt": prompt, "max_tokens": tokens},
        "anthropic": {"model": model, "messages": chat, "max_tokens": tokens, "stream": stream},
        "openai_embeddings": {"model": model, "input": prompt},
        "rerank": {"model": model, "query": prompt.split()[0], "documents": prompt.split()[1:]},
    }[api]


def asked(at, request):
    """The raw answer to a raw request, which asks for the connection to be closed."""
    with socket.create_connection((at.hostname, at.port), timeout=LIMIT_S) as s:
        s.sendall(request)
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    return answer


def post(at, path, body, key=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", f"Host: {at.netloc}", "Content-Type: application/json",
            f"Content-Length: {len(data)}", "Connection: close"]
    if key:
        head.append(f"Authorization: Bearer {key}")
    return asked(at, "\r\n".join(head).encode() + b"\r\n\r\n" + data)


def page_of(at, path):
    answer = asked(at, f"GET {path} HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        parts = []
        while body:
            size, _, rest = body.partition(b"\r\n")
            n = int(size, 16)
            parts.append(rest[:n])
            body = rest[n + 2:] if n else b""
        body = b"".join(parts)
    kept, seen = [], set()
    for line in filter(None, body.decode().splitlines()):
        is_sample = not line.startswith("#")
        name = line if is_sample or len(line.split()) < 3 else line.split()[2]
        if name.startswith(NOISE) or "_bucket{" in name or "_created" in name or "# HELP" in line:
            continue
        if is_sample:
            name = re.split("[ {]", line)[0]
            if name in seen and re.search(r" [0.]+$", line):
                continue
            seen.add(name)
        kept.append(line)
    note = ("# Its own families, without buckets, help, times of creation, further zeros of a name "
            "and families of zeros that the table of names lacks.\n")
    return (note + "\n".join(told_of(kept)) + "\n").encode()


def told_of(lines):
    """Of families that have a type: those with a value, and those of the table."""
    families = [[]]
    for line in lines:
        if line.startswith("# TYPE"):
            families.append([])
        families[-1].append(line)
    for family in families:
        samples = [x for x in family if not x.startswith("#")]
        names = [re.split("[ {]", x)[0] for x in samples]
        is_read = any(f'"{n}"' in TABLE for name in names for n in (name, re.sub("_(sum|count)$", "", name)))
        if family is families[0] or is_read or not all(re.search(r" [0.]+$", x) for x in samples):
            yield from family


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("url")
    p.add_argument("directory", type=pathlib.Path)
    p.add_argument("--apis", default="openai_chat")
    p.add_argument("--model", default="tiny")
    p.add_argument("--rerank-model", default="tiny")
    p.add_argument("--context", type=int, default=0, help="0: no question of a prompt too long")
    p.add_argument("--page", default="", help="its path, or where it is as a whole")
    p.add_argument("--refuses-ignore-eos", action="store_true")
    p.add_argument("--key", help="a wrong key: the only question then is what comes of it")
    p.add_argument("--answers", action="store_true", help="only these, and no refusal")
    p.add_argument("--reasoning", action="store_true", help="only answers that begin with it")
    a = p.parse_args()
    at = urllib.parse.urlparse(a.url)
    a.directory.mkdir(parents=True, exist_ok=True)

    def keep(name, answer):
        # Where an answer tells of a file, not on whose machine it was: as many letters, others.
        answer = answer.replace(HERE, b"/" + b"x" * (len(HERE) - 1))
        (a.directory / name).write_bytes(answer)

    apis = a.apis.split()
    first = apis[0]
    path = {api: PATHS[api].format(model=a.model) for api in apis}

    def body(api, stream, model=None, prompt=PROMPT, is_forced=not a.refuses_ignore_eos):
        model = model or (a.rerank_model if api == "rerank" else a.model)
        return body_of(api, model, stream, prompt, is_forced=is_forced)
    if a.key:
        keep("wrong_key.http", post(at, path[first], body(first, True), a.key))
        return
    if a.reasoning:
        keep("reasoning.stream.http", post(at, path[first], body_of(first, a.model, True, tokens=16)))
        keep("reasoning.whole.http", post(at, path[first], body_of(first, a.model, False, tokens=16)))
        return
    for api in apis:
        if api not in IN_ONE_PIECE:
            keep(f"{api}.stream.http", post(at, path[api], body(api, True)))
        if api not in ("triton", "plain_text"):
            whole = WHOLE_PATHS.get(api, path[api])
            keep(f"{api}.whole.http", post(at, whole, body(api, False)))
    if a.answers:
        return
    if a.refuses_ignore_eos:
        keep("ignore_eos.http", post(at, path[first], body(first, True, is_forced=True)))
    wrong = PATHS[first].format(model="no-such-model")
    keep("wrong_model.http", post(at, wrong, body(first, True, "no-such-model")))
    if a.context:
        long = " ".join([PROMPT] * a.context)
        keep("overflow.http", post(at, path[first], body(first, True, prompt=long)))
    if a.page:
        page = urllib.parse.urlparse(urllib.parse.urljoin(a.url, a.page))
        keep("metrics.txt", page_of(page, page.path))


if __name__ == "__main__":
    main()
