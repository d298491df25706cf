"""Tries examples/extending/report.cpp against a chat that takes what it is sent, refuses it, never answers,
or is not there: what is posted says what failed, and no chat changes the exit code or holds the program up.
    report.py REPORT LLMBENCH        the two programs
"""
import http.server
import json
import os
import socket
import subprocess
import sys
import threading

report, llmbench = sys.argv[1:]
posted = []


class Chat(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        posted.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(500 if self.path == "/refuses" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def run(url, chat=None):
    """(exit code, all that it said)"""
    environment = {**os.environ, "LLMBENCH_URL": url}
    if chat:
        environment["CHAT_WEBHOOK"] = chat
    done = subprocess.run([report], env=environment, text=True, timeout=240,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, flush=True)
    return done.returncode, done.stdout


def check(what, holds):
    if not holds:
        sys.exit(f"WRONG: {what}")


chat = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
threading.Thread(target=chat.serve_forever, daemon=True).start()
at = f"http://127.0.0.1:{chat.server_port}"
silent = socket.create_server(("127.0.0.1", 0))
with socket.create_server(("127.0.0.1", 0)) as taken:
    nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"

# 70 ms a token are a miss of the limit on tpot, and of no other.
with subprocess.Popen([llmbench, "serve", "--port", "0", "--decode-step", "70ms"], text=True, stdout=subprocess.PIPE) as slow:
    try:
        status, _ = run(slow.stdout.readline().split()[-1], at + "/takes")
    finally:
        slow.kill()
check(f"a miss ends with {status}", status == 1)
check(f"the chat was told {len(posted)} times", len(posted) == 1)
kind, body = posted[0]
lines = json.loads(body)["text"].split("\n")
print("\n".join(lines))
check(f"the post is {kind}", kind == "application/json")
told = [line for line in lines if line.startswith("chat answers in time: mean(tpot) <= 60 ms, ")]
check("the objective that failed", len(told) == 1)
measured, limit = (float(number.split()[1]) for number in told[0].split(", ")[1:])
check(f"{measured} is what was measured, {limit} the limit", limit == 0.06 < measured)

# A gate without a server is red at once.
alone, _ = run(nobody)
for where, curl_ends_with in ((at + "/refuses", 22), (nobody, 7), (f"http://127.0.0.1:{silent.getsockname()[1]}", 28)):
    status, said = run(nobody, where)
    check(f"{where} makes {status} of {alone}", status == alone != 0)
    told = [line for line in said.splitlines() if "CHAT_WEBHOOK" in line]
    check(f"{where} is told once: {told}", told == [f"CHAT_WEBHOOK was not told: curl ended with {curl_ends_with}"])
check("it was refused once", len(posted) == 2)
