"""The files of Compose and Quadlet in README.md are valid, and the daemon reads their labels."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import watched_host

try:
    import yaml
except ImportError:
    print("skipped: install the package python3-yaml")
    sys.exit(77)


def read(path):
    with open(os.path.join(watched_host.TREE, path), encoding="utf-8") as file:
        return file.read()


def snippet(kind, name):
    return re.search(rf"^```{kind}\n# \S*{name}\n(.*?)^```$", read("README.md"), re.M | re.S)[1]


def compose():
    """The service, with the types of YAML."""
    document = yaml.safe_load(snippet("yaml", "compose.yaml"))
    (service,) = document.pop("services").values()
    assert not document, document
    return service


def quadlet():
    """[(section, key, value)] as systemd reads it: a key may be repeated."""
    found, section = [], None
    for line in snippet("ini", "train.container").splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1]
        else:
            found.append((section, *re.fullmatch(r"(\w+)=(.*)", line).groups()))
    return found


def labels():
    return dict(value.split("=", 1) for _, key, value in quadlet() if key == "Label")


class Snippets(unittest.TestCase):
    def accepted(self, given):
        """Whether the daemon's parser of labels accepts them, and knows the one of the mode."""
        given = dict(given)
        mode = re.search(r'kModeLabel = "(\S+)"', read("agent/config/config.cpp"))[1]
        if given.pop(mode, None) not in ("observe", "advise", "enforce"):
            return False
        prefix = re.search(r'kLabelPrefix = "(\S+)"', read("agent/config/config.cpp"))[1]
        terms = " ".join(f"{name.removeprefix(prefix)}={value}" for name, value in given.items())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cgphase.toml")
            watched_host.write(path, f'model = "{watched_host.MODEL}"\n'
                                     f'containers = ["x {terms}"]\n')
            done = subprocess.run([watched_host.DAEMON, "--check-config", "--config", path],
                                  capture_output=True, text=True, check=False)
        return done.returncode == 0 and all(name.startswith(prefix) for name in given)

    def test_the_daemon_reads_the_labels(self):
        given = compose()["labels"]
        self.assertTrue(self.accepted(given))
        self.assertEqual(given, labels())
        self.assertLessEqual({"cgphase.class", "cgphase.cpu.min", "cgphase.memory.max"},
                             set(given))
        for wrong in ({"cgphase.mode": "Enforce"}, {"cgphase.clas": "batch"},
                      {"cgphase.class": "gold"}, {"cgphase.memory.max": "12X"}, {"class": "batch"}):
            with self.subTest(wrong=wrong):
                self.assertFalse(self.accepted({**given, **wrong}))

    def test_compose_knows_every_key_and_gets_text(self):
        service = compose()
        self.assertEqual(set(service), {"image", "cpus", "mem_limit", "labels"})
        for value in service["labels"].values():
            self.assertIsInstance(value, str)  # YAML would make 0.50 another text

    def test_quadlet_knows_every_key(self):
        # podman-systemd.unit(5) of Podman 4.4, the first with Quadlet
        self.assertLessEqual({(section, key) for section, key, _ in quadlet()},
                             {("Container", key) for key in ("Image", "PodmanArgs", "Label")})
        self.assertIn("Image", [key for _, key, _ in quadlet()])


if __name__ == "__main__":
    unittest.main()
