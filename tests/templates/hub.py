"""A private git repository at http://127.0.0.1:PORT/me/it, as GitHub and GitLab have one: who says nothing
or a token that may not do so gets 401, and two Authorization headers get 400. hub.py PORT REPOSITORY LOG"""
import base64
import http.server
import os
import subprocess
import sys


class Hub(http.server.BaseHTTPRequestHandler):
    def answer(self):
        said = self.headers.get_all("Authorization") or []
        with open(sys.argv[3], "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path} {len(said)} headers\n")
        user, _, password = base64.b64decode(said[0].split()[-1]).decode().partition(":") if said else ("", "", "")
        pushes = "receive-pack" in self.path
        if len(said) > 1 or ("contents-write" if pushes else "contents-") not in password:
            self.send_response(400 if len(said) > 1 else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="hub"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        prefix = "/me/it.git" if path.startswith("/me/it.git") else "/me/it"
        environment = dict(os.environ, GIT_PROJECT_ROOT=sys.argv[2], GIT_HTTP_EXPORT_ALL="1", REMOTE_USER=user,
                           PATH_INFO=path[len(prefix):], QUERY_STRING=query, REQUEST_METHOD=self.command,
                           CONTENT_TYPE=self.headers.get("Content-Type", ""), GIT_CONFIG_COUNT="2",
                           GIT_CONFIG_KEY_0="http.receivepack", GIT_CONFIG_VALUE_0="true",
                           GIT_CONFIG_KEY_1="safe.directory", GIT_CONFIG_VALUE_1="*")
        if self.headers.get("Content-Encoding"):
            environment["HTTP_CONTENT_ENCODING"] = self.headers["Content-Encoding"]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(lines.pop("Status", "200").split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hub).serve_forever()
