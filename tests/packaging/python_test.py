"""The commands and the program of docs/python.md, run on a real daemon's recording and export."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

from watched_host import TREE, WatchedHost


def blocks(kind):
    with open(os.path.join(TREE, "docs/python.md"), encoding="utf-8") as page:
        return re.findall(rf"^```{kind}\n(.*?)^```$", page.read(), re.M | re.S)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = WatchedHost(["web", "train"])
        cls.addClassCleanup(cls.host.close)
        cls.host.work_until(lambda: '"known"' in cls.host.ask("history", "web", "--json")[1])

    def run_shell(self, text):
        """Runs each line: cgphase asks the test's daemon, and the schemas are the tree's."""
        text = text.replace("/usr/share/cgphase/", os.path.join(TREE, "packaging/"))
        command = f'"$CGPHASE_COMMAND" --socket {self.host.path("run/read.sock")}'
        subprocess.run(["bash", "-ec", f'cgphase() {{ {command} "$@"; }}\n{text}'], check=True,
                       cwd=self.host.folder, capture_output=True,
                       env={**os.environ, "PATH": "/usr/bin:/bin"})

    def test_pandas_reads_a_recording_and_an_export(self):
        self.run_shell(blocks("sh")[0])
        program, = blocks("python")
        done = subprocess.run(["/usr/bin/python3", "-W", "error", "-c", program], text=True,
                              capture_output=True, check=False, cwd=self.host.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^train +\d+\.\d+ +104857600")  # cores and bytes
        self.assertRegex(done.stdout, r"(?m)^\d+ +web +known +\d")
        self.assertIn("[time_ns, name, resource, direction, reason, verdict, time]", done.stdout)

    def test_the_validator_accepts_a_reply_and_refuses_another(self):
        check = blocks("sh")[1]
        self.run_shell(check)
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_shell(check.replace("cgphase status", "cgphase list"))


if __name__ == "__main__":
    for module in ("pandas", "jsonschema"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: install the package python3-{module}")
            sys.exit(77)
    unittest.main()
