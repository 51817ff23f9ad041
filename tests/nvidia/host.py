"""Shared by the tests on a host with a real NVIDIA GPU. They are run by hand and as root, on a
machine whose GPU does nothing else (docs/operations.md)."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
failures = []


def check(what, good, found):
    print(f"{'ok' if good else 'FAILED'}: {what}: {found}", flush=True)
    if not good:
        failures.append(what)


def finish():
    print(f"FAILED: {', '.join(failures)}" if failures else "all passed")
    return 1 if failures else 0


def cannot(why):
    print(f"{pathlib.Path(sys.argv[0]).name}: {why}", file=sys.stderr)
    sys.exit(finish() if failures else 2)


def options(usage, *more):
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("--build", default=TREE / "build/release", type=pathlib.Path)
    parser.add_argument("--python", default="python3")
    for word in more:
        parser.add_argument(word)
    return parser.parse_args()


def waits(test, seconds=30):
    end = time.monotonic() + seconds
    while not (found := test()) and time.monotonic() < end:
        time.sleep(0.5)
    return found


def cgroup_root():
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            return pathlib.Path(fields[4])
    return cannot("no cgroup v2 is mounted here")


@contextlib.contextmanager
def cgroup_at(path):
    path.mkdir()
    try:
        yield path
    finally:
        for _ in range(500):  # its processes may still be ending
            with contextlib.suppress(OSError):
                path.rmdir()
                break
            time.sleep(0.01)


@contextlib.contextmanager
def running(command, **more):
    process = subprocess.Popen(list(map(str, command)), **more)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def enters(cgroup):
    """For the child: it is in the cgroup from its start."""
    return lambda: (cgroup / "cgroup.procs").write_text("0")


@contextlib.contextmanager
def load(python, cgroup, program, *words):
    """A PyTorch program that prints "ready". It may write to the file named by its last word, which
    `counted` reads."""
    with tempfile.TemporaryDirectory() as own, contextlib.ExitStack() as stack:
        counted = pathlib.Path(own) / "counted"
        counted.write_text("")
        process = stack.enter_context(running([python, "-c", program, *words, counted], text=True,
                                              stdout=subprocess.PIPE, preexec_fn=enters(cgroup)))
        process.counted = counted.read_text
        if process.stdout.readline().strip() != "ready":
            cannot("the load does not start: check that torch is installed and sees the GPU")
        yield process


class Daemon:
    """`config` is in the form of cgphase.toml. `command` goes before its program, `more` to
    Popen."""

    def __init__(self, build, folder, config, command=(), **more):
        self.build, self.folder = build, folder
        path = folder / "cgphase.toml"
        path.write_text(f"""\
cgroup_root = "{cgroup_root()}"
state_dir = "{folder}/state"
runtime_dir = "{folder}/run"
{config}
""")
        for name in ("state", "run"):
            (folder / name).mkdir(exist_ok=True)
        self.log = open(folder / "log", "a")
        self.context = running([*command, build / "bin/cgphased", "--config", path],
                               stdout=self.log, stderr=self.log,
                               env={**os.environ, "CGPHASE_TEST_KEYS": "1"}, **more)

    def __enter__(self):
        self.process = self.context.__enter__()

        def answers():
            with contextlib.suppress(subprocess.CalledProcessError):
                return self.process.poll() is not None or self.ask("status")
        if waits(answers) and self.process.poll() is None:
            return self
        self.__exit__(None, None, None)
        print((self.folder / "log").read_text())
        return cannot("the daemon does not start")

    def __exit__(self, *error):
        self.context.__exit__(*error)
        self.log.close()
        if error[0] is None and self.process.returncode != 0:
            check("the daemon exits with 0", False, (self.folder / "log").read_text()[-2000:])

    def text(self, *words):
        return subprocess.run([self.build / "bin/cgphase", "--socket",
                               self.folder / "run/read.sock", *words], text=True, check=True,
                              capture_output=True).stdout

    def ask(self, *words):
        return json.loads(self.text(*words, "-o", "json"))

    def source(self, name):
        return next(one for one in self.ask("status")["sources"] if one["name"] == name)

    def container(self, cgroup, containers=None):
        for one in containers or self.ask("list")["containers"]:
            if one["path"].endswith("/" + cgroup.name):
                return one
        return None

    def gpu_of(self, cgroup):
        container = self.container(cgroup)
        return container["gpu"] if container else {}

    def cpu_seconds(self):
        return sum(int((task / "schedstat").read_text().split()[0])
                   for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()) / 1e9

    def rss_mib(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return {key: int(re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)[1]) / 1024
                for key in ("RssAnon", "RssFile")}
