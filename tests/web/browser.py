"""A headless chromium that is told what to do over a pipe (its DevTools protocol). Unlike with
--dump-dom its time is the real one, so a page may wait for an answer that does not come."""

import json
import os
import select
import shutil
import subprocess
import time

PATH = shutil.which("chromium")
REPLY_SECONDS = 60


class Browser:
    """One page of one browser. `folder` is for its files and its log."""

    def __init__(self, folder):
        # The protocol is spoken on the descriptors 3 and 4.
        self._log = open(os.path.join(folder, "browser.log"), "wb")
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null', "sh", PATH, "--headless",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={folder}/home",
             "--window-size=1100,1200", "--remote-debugging-pipe"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0,
            env={**os.environ, "HOME": folder})
        self._buffer, self._last_id, self._session = b"", 0, None
        self.exceptions = []  # that no script of the page caught
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        self.call("Runtime.enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        for end in (self._process.stdin, self._process.stdout, self._log):
            end.close()

    def call(self, method, **params):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        while True:
            reply = self._read()
            if reply.get("method") == "Runtime.exceptionThrown":
                self.exceptions.append(reply["params"]["exceptionDetails"])
            if reply.get("id") != self._last_id:
                continue
            if "error" in reply:
                raise AssertionError(f"{method}: {reply['error']}")
            return reply["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            if not select.select([self._process.stdout], [], [], REPLY_SECONDS)[0]:
                raise AssertionError("the browser does not answer")
            part = os.read(self._process.stdout.fileno(), 1 << 20)
            if not part:
                raise AssertionError("the browser has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def value(self, expression):
        """Of an expression of JavaScript, in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until the expression is true."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {expression}; the page says: " +
                                     str(self.value("document.body.innerText")))
            time.sleep(0.05)

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")
