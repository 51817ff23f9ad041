#!/usr/bin/python3
"""The page in a real browser, served by the real daemon over made-up cgroups with hostile names: no
script of theirs runs, no element of theirs is made, every name is shown as text.

page_test.py CGPHASED MODEL"""

import html.parser
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BROWSER = shutil.which("chromium")
NAMES = [
    b"<img src=x onerror=document.title='owned'>",
    b"\"><svg onload=document.title='owned'>",
    b"<script>document.title='owned'<\\script>",
    b"\x1b[31mred\x1b]0;owned\x07",
    b"'onmouseover='x",
    b"\xff\xfe not text",
    "\u202egnirts".encode(),
    b"plain-worker",
]
SHOWN = [
    "<img src=x onerror=document.title='owned'>",
    "\"><svg onload=document.title='owned'>",
    "<script>document.title='owned'<\\\\script>",
    "\\x1b[31mred\\x1b]0;owned\\x07",
    "'onmouseover='x",
    "\\xff\\xfe not text",
    "\\xe2\\x80\\xaegnirts",
    "plain-worker",
]


def write(folder, name, text):
    with open(os.path.join(os.fsencode(folder), name), "w", encoding="ascii") as file:
        file.write(text)


def make_tree(root):
    # Without the controller of memory nothing can be enforced, so no real cgroup is asked for.
    write(root, b"cgroup.controllers", "cpu\n")
    for name in NAMES:
        folder = os.path.join(os.fsencode(root), name)
        os.mkdir(folder)
        write(folder, b"cpu.max", "50000 100000\n")
        write(folder, b"cpu.stat", "usage_usec 1000\nthrottled_usec 0\nnr_throttled 0\n")
        write(folder, b"memory.max", "1073741824\n")
        write(folder, b"memory.current", "209715200\n")
        write(folder, b"memory.stat", "anon 104857600\nfile 104857600\n"
              "inactive_file 104857600\nshmem 0\nkernel 0\nsock 0\n")
        write(folder, b"memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n")
        write(folder, b"cgroup.events", "populated 1\nfrozen 0\n")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Elements(html.parser.HTMLParser):
    """The names of all elements, the title, and all text of what is no script or style."""

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes, self.texts, self.inside = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        self.texts.append((self.inside[-1] if self.inside else "", data))

    def text_in(self, tag):
        return [data for inside, data in self.texts if inside == tag]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cgphase-web-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name in ("cgroups", "state", "run", "home"):
            os.mkdir(os.path.join(cls.folder, name), 0o700)
        make_tree(os.path.join(cls.folder, "cgroups"))
        cls.port = free_port()
        write(cls.folder, b"cgphase.toml",
              'include = ["/*"]\n[bpf]\nenabled = false\n[http]\n'
              f'listen = "127.0.0.1:{cls.port}"\n')
        cls.log = open(os.path.join(cls.folder, "log"), "w+b")
        cls.addClassCleanup(cls.log.close)
        cls.daemon = subprocess.Popen(
            [sys.argv[1], "--config", f"{cls.folder}/cgphase.toml", "--model", sys.argv[2],
             "--cgroup-root", f"{cls.folder}/cgroups", "--state-dir", f"{cls.folder}/state",
             "--runtime-dir", f"{cls.folder}/run"], stderr=cls.log)
        cls.addClassCleanup(cls.end_daemon)
        cls.await_containers()
        cls.dom, cls.console = cls.browse("--dump-dom", "/")

    @classmethod
    def end_daemon(cls):
        cls.daemon.send_signal(signal.SIGTERM)
        cls.daemon.wait(30)

    @classmethod
    def get(cls, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}{path}", timeout=10) as reply:
            return reply.read().decode()

    @classmethod
    def await_containers(cls):
        end = time.monotonic() + 60
        while time.monotonic() < end and cls.daemon.poll() is None:
            try:
                if len(json.loads(cls.get("/api/v1/list"))["containers"]) == len(NAMES):
                    return
            except OSError:
                pass
            time.sleep(0.2)
        cls.log.seek(0)
        raise AssertionError("no containers are seen: " + cls.log.read().decode())

    @classmethod
    def browse(cls, *arguments):
        """What the browser prints, after some seconds of the page's own time, and its log."""
        *options, path = arguments
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--enable-logging=stderr",
                   f"--user-data-dir={cls.folder}/home", "--virtual-time-budget=6000",
                   "--window-size=1100,1200", *options, f"http://127.0.0.1:{cls.port}{path}"]
        run = subprocess.run(command, check=True, capture_output=True, timeout=240,
                             env={**os.environ, "HOME": f"{cls.folder}/home"})
        return run.stdout.decode(), run.stderr.decode(errors="replace")

    def test_no_script_of_a_name_runs(self):
        self.assertEqual(Elements(self.dom).text_in("title"), ["cgphase"])

    def test_no_element_or_attribute_of_a_name_is_made(self):
        found = Elements(self.dom)
        self.assertEqual(found.names.count("script"), 1)
        for name in ("img", "svg", "b", "iframe"):
            self.assertNotIn(name, found.names)
        self.assertEqual([name for name in found.attributes if name.startswith("on")], [])

    def test_every_name_is_shown_escaped_as_text(self):
        self.assertEqual(sorted(Elements(self.dom).text_in("h3")), sorted(SHOWN))

    def test_usage_limits_and_status_are_shown(self):
        text = "\n".join(data for _, data in Elements(self.dom).texts)
        self.assertIn("100 MiB used, limit 1.0 GiB", text)
        self.assertIn("limit 0.50", text)
        self.assertIn(f"mode observe · {len(NAMES)} containers, 0 managed", text)
        self.assertIn("nothing has been changed on this host", text)

    def test_what_does_not_work_is_told_and_that_the_daemon_answers(self):
        texts = [data for _, data in Elements(self.dom).texts]
        self.assertIn("cgroup v2 off: the root is a plain directory, not a cgroup2 mount", texts)
        self.assertIn("connected to the daemon", texts)

    def test_the_policy_of_the_page_refuses_nothing_that_is_its_own(self):
        self.assertEqual([line for line in self.console.split("\n") if "CONSOLE" in line], [])

    def test_a_browser_obeys_the_policy_on_foreign_pages_of_the_daemon(self):
        dom, _ = self.browse("--dump-dom", "/api/v1/list")
        self.assertNotIn("owned</title>", dom)
        self.assertNotIn("<img", dom)


if __name__ == "__main__":
    if BROWSER is None:
        print("chromium is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
