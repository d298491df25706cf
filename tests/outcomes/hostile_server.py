#!/usr/bin/env python3
"""A server whose every word wants to be something else: a command for a CI runner, an escape for a
terminal, a mention, a link, an image, an end of a file's format.

    hostile_server.py PORT error|stream|OFFSET

With an offset its words are long, and each that a line may begin with behind that many characters is
a command.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ("bad\n::error::from the server\r\n::stop-commands::token\n##[error]azure ##vso[task.complete]"
         "\n##teamcity[buildProblem]\nsection_start:1:x\r\x1b[0K\x1b[31mred\x9b31m\u202eback\u2028"
         " @octocat me/it#12 #34 [link](https://evil.test) ![i](https://evil.test/i.png)"
         " https://evil.test <img src=x onerror=alert(1)> </script> ]]> &amp; `code` ``two`` | cell | \ud83d")
if sys.argv[2].isdigit():
    WORDS = "y" * int(sys.argv[2]) + " ::error::forged , ::stop-commands::x  \u00a0 ::add-mask::e" * 5


class Hostile(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        models = {"data": [{"id": "m" + WORDS}]} if self.path == "/v1/models" else {}
        self.answer(200, "application/json", json.dumps(models).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1/chat/completions":
            return self.answer(404, "text/plain", b"no")
        if sys.argv[2] != "stream":
            return self.answer(500, "application/json", json.dumps({"error": {"message": WORDS}}).encode())
        choice = {"index": 0, "delta": {"content": WORDS}, "finish_reason": "abort" + WORDS}
        events = "data: " + json.dumps({"choices": [choice]}) + "\n\ndata: [DONE]\n\n"
        self.answer(200, "text/event-stream", events.encode())

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hostile).serve_forever()
