"""The servers of examples/extending: acme's words as server-sent events, and speech as bare bytes.
    own_apis.py --port 0        says where it listens, as the simulated server does
"""
import http.server
import json
import sys
import time


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, **fields):
        self.piece(b"data: " + json.dumps(fields).encode() + b"\n\n")

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        speaks = self.path == "/v1/audio/speech" and asked["response_format"] == "pcm" and asked["input"]
        if not speaks and not (self.path == "/v1/speak" and asked["live"]):
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", "audio/pcm" if speaks else "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if speaks:
            for _ in range(6):
                time.sleep(0.005)
                self.piece(bytes(4800))  # a tenth of a second
        else:
            self.event(kind="hello")
            words = asked.get("words", 8)
            for _ in range(words):
                time.sleep(0.002)
                self.event(kind="piece", text=" word")
            self.event(kind="bye", why="length", asked=len(asked["say"].split()), said=words)
        self.wfile.write(b"0\r\n\r\n")


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Server)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
