#!/usr/bin/env python3
"""Two servers that write down what they are asked, one request a line of JSON: recorder.py PORT PORT.
What differs from one request to the next (prompts, ids, lengths of bodies) is left out."""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def server(port):
    class Recorder(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, kind, body):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def note(self, body):
            changing = ("host", "content-length", "x-request-id", "connection", "sec-websocket-key")
            fields = {k.lower(): v for k, v in self.headers.items() if k.lower() not in changing}
            for name in ("messages", "prompt", "content", "input", "inputs", "text", "previous_response_id"):
                if name in body:
                    said = body[name]
                    body[name] = [m.get("role") for m in said] if isinstance(said, list) and said and isinstance(said[0], dict) else "..."
            with open(f"asked-{port}", "a", encoding="utf-8") as log:
                log.write(json.dumps([self.command, self.path, fields, body], sort_keys=True) + "\n")

        def do_GET(self):
            self.note({})
            if self.path == "/page":
                return self.answer("text/plain", b"# TYPE up gauge\nup 1\n")
            self.answer("application/json", json.dumps({"data": [{"id": "m"}]}).encode())

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.note(dict(body))
            n = max(1, min(int(body.get("max_tokens") or body.get("max_output_tokens") or 4), 64))
            if self.path.endswith("/responses"):
                end = {"id": self.headers["X-Request-Id"] or "r", "status": "completed", "usage": {"input_tokens": 8, "output_tokens": n}}
                events = [{"type": "response.output_text.delta", "delta": "a "}] * n + [{"type": "response.completed", "response": end}]
                return self.answer("text/event-stream", "".join("data: " + json.dumps(e) + "\n\n" for e in events).encode())
            choices = [{"index": 0, "delta": {"content": "a "}, "text": "a ", "finish_reason": None}] * n
            choices.append({"index": 0, "delta": {}, "text": "", "finish_reason": "length"})
            usage = {"prompt_tokens": 8, "completion_tokens": n, "total_tokens": 8 + n}
            if body.get("stream"):
                events = [{"choices": [c]} for c in choices] + [{"choices": [], "usage": usage}]
                lines = "".join("data: " + json.dumps(e) + "\n\n" for e in events) + "data: [DONE]\n\n"
                return self.answer("text/event-stream", lines.encode())
            whole = {"index": 0, "message": {"content": "a " * n}, "text": "a " * n, "finish_reason": "length"}
            self.answer("application/json", json.dumps({"choices": [whole], "usage": usage}).encode())

        def log_message(self, *_):
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Recorder).serve_forever()


for other in sys.argv[2:]:
    threading.Thread(target=server, args=(int(other),), daemon=True).start()
server(int(sys.argv[1]))
