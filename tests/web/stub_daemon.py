"""Serves the files of web/ as they stand there, and as the daemon's answers what a test sets."""

import http.server
import json
import os
import threading
import time
import urllib.parse

WEB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "web")
FILES = {"/": ("page.html", "text/html; charset=utf-8"),
         "/page.js": ("page.js", "text/javascript; charset=utf-8"),
         "/page.css": ("page.css", "text/css; charset=utf-8"),
         "/icon.svg": ("icon.svg", "image/svg+xml")}
HANGS = object()  # an answer: the connection is taken, and nothing ever sent


class StubDaemon:
    """`answers` is by verb: what is sent as JSON with status 200, a pair of a status and a text, or
    HANGS. `asked` has of every question when (monotonic) and what, as (verb, container); `hung` has
    when those came that hang."""

    def __init__(self):
        self.answers, self.asked, self.hung = {}, [], []
        self._ended = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def times(self, verb):
        return [at for at, (asked, _) in list(self.asked) if asked == verb]

    def answer(self, target):
        """The status, type and body, or None: none ever comes."""
        url = urllib.parse.urlsplit(target)
        if url.path in FILES:
            name, kind = FILES[url.path]
            with open(os.path.join(WEB, name), "rb") as file:
                return 200, kind, file.read()
        verb = url.path.removeprefix("/api/v1/")
        container = urllib.parse.parse_qs(url.query).get("container", [None])[0]
        self.asked.append((time.monotonic(), (verb, container)))
        answer = self.answers.get(verb, (404, "no such verb"))
        if answer is HANGS:
            self.hung.append(time.monotonic())
            self._ended.wait()
            return None
        if isinstance(answer, tuple):
            return answer[0], "text/html", answer[1].encode()
        return 200, "application/json", json.dumps(answer).encode()

    def _handler(self):
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                found = stub.answer(self.path)
                if found is None:
                    return
                status, kind, body = found
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
