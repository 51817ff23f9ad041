"""The Ansible role and the playbook of its README, without a host: the syntax, the modules, and the
configuration that the template makes. ansible_test.sh runs the role."""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import ansible  # noqa: F401
    import jinja2
    import yaml
except ImportError:
    print("skipped: install the package ansible-core")
    sys.exit(77)

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
ROLES = os.path.join(TREE, "packaging/ansible")
DAEMON = os.environ.get("CGPHASED_PROGRAM", "")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tasks():
    for folder in ("tasks", "handlers"):
        for path in glob.glob(f"{ROLES}/cgphase/{folder}/*.yml"):
            yield from yaml.safe_load(read(path))


def playbook():
    return re.search(r"^```yaml\n(.*?)^```$", read(f"{ROLES}/README.md"), re.M | re.S)[1]


def variables():
    """Those of the README's playbook; the others have their defaults."""
    (play,) = yaml.safe_load(playbook())
    return play["roles"][0]["vars"]


def defaults():
    return yaml.safe_load(read(f"{ROLES}/cgphase/defaults/main.yml"))


class Role(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def valid(self, **changed):
        """Whether the daemon would start with what the template makes of the variables."""
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
        environment.filters["to_json"] = json.dumps
        template = environment.from_string(read(f"{ROLES}/cgphase/templates/ansible.toml.j2"))
        text = template.render({**defaults(), **changed})
        path = self.write("ansible.toml", f'{text}model = "{TREE}/model/default_model.json"\n')
        return subprocess.run([DAEMON, "--check-config", "--config", path], check=False,
                              capture_output=True).returncode == 0

    def test_ansible_accepts_the_playbook_of_the_readme(self):
        done = subprocess.run(
            ["/usr/bin/python3", "-m", "ansible", "playbook", "--syntax-check", "-i", "host,",
             self.write("playbook.yml", playbook())], capture_output=True, text=True, check=False,
            env={**os.environ, "ANSIBLE_ROLES_PATH": ROLES, "ANSIBLE_HOME": self.folder.name})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_readme_has_every_variable_and_no_other(self):
        self.assertEqual(set(variables()), set(defaults()))

    def test_the_daemon_accepts_the_configuration(self):
        self.assertTrue(self.valid())
        keys = {"cgphase_mode": "observe", "cgphase_enforce_names": ["web-*", 'a "b"'],
                "cgphase_config": {**variables()["cgphase_config"], "bpf.enabled": False,
                                   "containers": ["web-* class=critical"]}}
        self.assertTrue(self.valid(**keys))
        self.assertFalse(self.valid(**{**keys, "cgphase_config": {"stor.cap": "1G"}}))
        self.assertFalse(self.valid(**{**keys, "cgphase_mode": "Enforce"}))

    def test_no_task_reloads_systemd(self):
        modules = {}
        for task in tasks():
            (module,) = (key for key in task if key.startswith("ansible.builtin."))
            modules.setdefault(module.removeprefix("ansible.builtin."), []).append(task[module])
        self.assertEqual(set(modules), {"copy", "apt", "template", "service"})
        for service in modules["service"]:  # `enabled` may reload, and so may daemon_reload
            self.assertEqual(set(service), {"name", "state"})


if __name__ == "__main__":
    unittest.main()
