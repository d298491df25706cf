#!/usr/bin/env python3
"""A server in front of another one, with answers of its own to POST /reset_prefix_cache and /flush_cache: nothing is emptied.
    resets.py PORT BEHIND STATUS...     of the first such post, the second ..; the last is that of all others"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

port, behind, statuses = int(sys.argv[1]), sys.argv[2], [int(s) for s in sys.argv[3:]]


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        if self.path in ("/reset_prefix_cache", "/flush_cache"):
            return self.answer(statuses.pop(0) if len(statuses) > 1 else statuses[0], b'{"error":"no"}')
        try:
            a = urlopen(Request(behind + self.path, body, {"Content-Type": "application/json"}))
        except HTTPError as e:
            a = e
        self.answer(a.status, a.read(), a.headers["Content-Type"] or "text/plain")

    do_POST = do_GET


ThreadingHTTPServer(("127.0.0.1", port), Front).serve_forever()
