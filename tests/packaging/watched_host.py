"""A real daemon that observes made-up cgroups, and the command that asks it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODEL = os.path.join(TREE, "model/default_model.json")
COMMAND = os.environ.get("CGPHASE_COMMAND", "")
DAEMON = os.environ.get("CGPHASED_PROGRAM", "")
FILES = {
    "cpu.max": "200000 100000\n",
    "memory.max": "1073741824\n",
    "memory.current": "209715200\n",
    "memory.stat": "anon 104857600\nfile 104857600\ninactive_file 104857600\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "cgroup.events": "populated 1\nfrozen 0\n",
}


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


class WatchedHost:
    """With the containers `names`, which use one core. Its files are in `folder`."""

    def __init__(self, names):
        self.folder, self.names, self.used_usec = tempfile.mkdtemp(prefix="cgphase-"), names, 0
        for part in ("cgroups", "state", "run", "proc"):
            os.mkdir(self.path(part), 0o700)
        # Without the processes of this machine, where another test may run another daemon.
        for name in os.listdir("/proc"):
            if not name.isdecimal():
                os.symlink("/proc/" + name, self.path("proc", name))
        # Without the controller of memory nothing can be enforced, so no real cgroup is needed.
        write(self.path("cgroups", "cgroup.controllers"), "cpu\n")
        for name in names:
            os.mkdir(self.path("cgroups", name))
            for file, text in FILES.items():
                write(self.path("cgroups", name, file), text)
        self.work(0)
        write(self.path("cgphase.toml"),
              f'model = "{MODEL}"\ninclude = ["/*"]\ninterval = "100ms"\n'
              '[bpf]\nenabled = false\n')
        with open(self.path("log"), "wb") as log:
            self.daemon = subprocess.Popen(
                [DAEMON, "--config", self.path("cgphase.toml"), "--cgroup-root",
                 self.path("cgroups"), "--proc-root", self.path("proc"), "--state-dir",
                 self.path("state"), "--runtime-dir", self.path("run")], stderr=log)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def work(self, usec):
        self.used_usec += usec
        for name in self.names:
            write(self.path("cgroups", name, "cpu.stat"),
                  f"usage_usec {self.used_usec}\nthrottled_usec 0\nnr_throttled 0\n")

    def ask(self, *words):
        """Runs the command in the folder: (exit status, standard output, standard error)."""
        done = subprocess.run([COMMAND, "--socket", self.path("run", "read.sock"), *words],
                              capture_output=True, text=True, check=False, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def work_until(self, done):
        """Lets the containers work until `done()`, at most a minute."""
        end = time.monotonic() + 60
        while not done():
            if time.monotonic() > end or self.daemon.poll() is not None:
                with open(self.path("log"), encoding="utf-8") as log:
                    raise AssertionError("the daemon does not get so far: " + log.read())
            time.sleep(0.1)
            self.work(100_000)

    def close(self):
        self.daemon.send_signal(signal.SIGTERM)
        status = self.daemon.wait(30)
        shutil.rmtree(self.folder)
        if status != 0:
            raise AssertionError(f"the daemon ended with {status}")
