#!/usr/bin/env python3
"""A proxy before an inference server that plants one regression.

    meddler.py PORT SERVER_PORT [as-is|token|clock|twice]

    as-is   changes nothing
    token   one more word at the head of each prompt
    clock   the time, to the nanosecond, at the head of each prompt
    twice   each fifth request for tokens goes to the server a second time, whose answer is dropped

Pages and everything else pass as they are. Only the Python standard library is used.
"""
import http.client
import http.server
import itertools
import json
import sys
import threading
import time

port, server_port = int(sys.argv[1]), int(sys.argv[2])
plants = sys.argv[3] if len(sys.argv) > 3 else "as-is"
asked = itertools.count(1)


def with_head(body, head):
    """The request with these words before all that it says; a prompt of token ids gets one of its own."""
    body = json.loads(body)
    prompt = body.get("prompt")
    if isinstance(prompt, list):
        body["prompt"] = [prompt[-1] if plants == "token" else time.time_ns() % 50 + 100] + prompt
    elif isinstance(prompt, str):
        body["prompt"] = head + " " + prompt
    for message in body.get("messages", [])[:1]:
        message["content"] = head + " " + message["content"]
    return json.dumps(body).encode()


class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def upstream(self, body):
        server = http.client.HTTPConnection("127.0.0.1", server_port, timeout=600)
        headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
        for name in ("Authorization", "X-Request-Id", "Accept"):
            if self.headers.get(name):
                headers[name] = self.headers[name]
        server.request(self.command, self.path, body, headers)
        return server.getresponse()

    def relay(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        generates = self.path.endswith("/completions") or self.path.endswith("/completion")
        if body and generates:
            if plants == "token":
                body = with_head(body, "the")
            if plants == "clock":
                body = with_head(body, str(time.time_ns()))
            if plants == "twice" and next(asked) % 5 == 0:
                again = threading.Thread(target=lambda: self.upstream(body).read())
                again.start()
                again.join()
        answer = self.upstream(body)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while part := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = relay


http.server.ThreadingHTTPServer.daemon_threads = True
http.server.ThreadingHTTPServer(("127.0.0.1", port), Relay).serve_forever()
