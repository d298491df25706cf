"""Answers every request with one status and says its first line: answers.py PORT [STATUS]. As a proxy
it would answer for all the world."""
import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[2]) if len(sys.argv) > 2 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, _format, *_arguments):
        print(self.requestline, flush=True)


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
