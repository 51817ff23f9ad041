"""Every JSON reply of the command has a schema that describes it and no other. The replies are
those of the real daemon, or of verbs that need none."""

import json
import os
import unittest
import unittest.mock

import schema_check
import watched_host
from manual_test import command

TRACES = [os.path.join(watched_host.TREE, "tests/data", name)
          for name in ("train-15-heldout.csv.gz", "serve-15-heldout.csv.gz")]
PARAMETERS = os.path.join(watched_host.TREE, "tests/fuzz/corpus/ai4dl_parameters/expanded")
MODEL = ["--model", watched_host.MODEL]
JOB = ["--cpus", "0.1", "--memory", "1M", "--for", "1m"]
ASSERTION = ["--assert", "hold.cpu.samples_over <= 100%"]
# Verb -> arguments of each run; STATE is a folder without a daemon, FILE a path to write.
JSON = {
    "status": [[]], "list": [[]], "top": [[]], "show": [["web"]], "explain": [["web"]],
    "history": [["web"]], "events": [[]], "doctor": [[]],
    "mode": [["default"], ["observe", "web"]], "pause": [["web"]], "resume": [["web"]],
    "pin": [["web", "cpu=0.5"], ["web", "auto"]], "restore": [["web"], ["--all"]],
    "config-show": [[], ["--origin"]], "config-diff": [[]], "config-check": [["CONFIG"]],
    "bundle": [["-o", "FILE"]],
    "fit": [JOB, [*JOB, TRACES[0], *MODEL, "--host-cpus", "8", "--host-memory", "8G"]],
    "size": [["web"], [*TRACES, *MODEL]],
    "model-list": [["--state-dir", "STATE"], []],
    "model-install": [[watched_host.MODEL, "--state-dir", "STATE"]],
    "model-rollback": [["--state-dir", "STATE"]],
    "model-challenge": [["--dry-run", *TRACES],
                        [*MODEL, "--least", "1s", "--dry-run", *TRACES]],
    "model-check": [[watched_host.MODEL], [watched_host.MODEL, *TRACES]],
    "predict": [[TRACES[0], *MODEL]], "expand": [[*TRACES, *MODEL]],
    "bursts": [TRACES], "prototypes": [[*TRACES, *MODEL]],
    "replay": [[*TRACES, *MODEL, "--policy", "hold,static", "--closed-loop"],
               [*TRACES, *MODEL, "--policy", "hold,static", "--compare", "hold", "static",
                *ASSERTION]],
}
TEXT = {
    "train": [["--epochs", "0", "-o", "FILE", TRACES[0]]], "record": [["-o", "FILE"]],
    "export": [["-o", "FILE"]], "plot": [[TRACES[0], *MODEL, "-o", "FILE"]],
    "completion": [["bash"]], "model-show": [[watched_host.MODEL]],
    "model-import": [[PARAMETERS, "-o", "FILE"]],
    "model-merge": [[watched_host.MODEL, watched_host.MODEL, "-o", "FILE"]],
}
EXITS = {0, 1, 7}  # doctor finds faults on such a host; a job may not fit


class Replies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = watched_host.WatchedHost(["web", "train"])
        cls.addClassCleanup(cls.host.close)
        os.mkdir(cls.host.path("other"))
        cls.host.work_until(lambda: cls.host.ask("history", "web", "--json")[1].count("{") > 20)

    def replies(self, verb, runs):
        """(exit status, standard output) of each run."""
        places = {"STATE": self.host.path("other"), "FILE": self.host.path("file"),
                  "CONFIG": self.host.path("cgphase.toml")}
        for words in runs:
            status, out, error = self.host.ask(
                *verb.split("-"), *(places.get(word, word) for word in words), "--json")
            self.assertIn(status, EXITS, f"{verb} {words}: {error}")
            yield out

    def test_every_verb_is_known_and_every_schema_is_that_of_a_verb(self):
        verbs = {"-".join(verb) for verb in command()}
        leaves = {verb for verb in verbs if verb and not any(
            other.startswith(verb + "-") for other in verbs)}
        self.assertEqual(leaves, set(JSON) | set(TEXT), "add a new verb above, and its schema")
        self.assertEqual(schema_check.schema_names(),
                         {"common", *(schema_check.schema_name(verb) for verb in JSON)})

    def test_the_schemas_describe_the_replies_and_no_others(self):
        for verb, runs in JSON.items():
            with self.subTest(verb=verb):
                for out in self.replies(verb, runs):
                    reply = json.loads(out)
                    self.assertEqual(schema_check.complaints(verb, reply), [])
                    self.assertEqual(list(schema_check.unnoticed(verb, reply)), [])

    def test_a_schema_that_says_too_little_is_noticed(self):
        for loose, found in (({}, ["another key in ''", "no 'a' in ''"]),
                             ({"required": ["a"]}, ["another key in ''"])):
            validator = schema_check.jsonschema.Draft202012Validator(loose)
            with unittest.mock.patch.object(schema_check, "validator", lambda _: validator):
                self.assertEqual(list(schema_check.unnoticed("status", {"a": 1})), found)

    def test_the_other_verbs_print_no_json(self):
        for verb, runs in TEXT.items():
            with self.subTest(verb=verb):
                for out in self.replies(verb, runs):
                    with self.assertRaises(ValueError):
                        json.loads(out)


if __name__ == "__main__":
    unittest.main()
