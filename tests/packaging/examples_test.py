#!/usr/bin/python3
"""Compares the examples for Prometheus and Grafana with the existing metrics in docs/metrics.md.
Another test compares the table there with the program."""

import json
import os
import re
import unittest

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DASHBOARD = "packaging/grafana/grafana-dashboard.json"
RULES = "packaging/prometheus/prometheus-rules.yml"
RULES_TEST = "tests/packaging/prometheus-rules-test.yml"
ROW = re.compile(r"^\| `(cgphase_\w+)` \| (\w+) \| ([\w, ]*) \| .* \|$", re.M)
NAME = re.compile(r"(?<![\w:])cgphase_\w+")
SELECTOR = re.compile(r"(?<![\w:])(cgphase_\w+)\{([^}]*)\}")


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def metrics():
    """Sample name -> label names."""
    found = {}
    for name, kind, labels in ROW.findall(read("docs/metrics.md")):
        endings = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        for ending in endings:
            found[name + ending] = set(filter(None, labels.split(", ")))
    return found


def expressions(value):
    """Yields every string of a dashboard."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from expressions(one)
    elif isinstance(value, str):
        yield value


class Examples(unittest.TestCase):
    def check_names(self, path, text):
        known = metrics()
        self.assertGreater(len(known), 30)
        names = set(NAME.findall(text))
        self.assertGreater(len(names), 8, path)
        self.assertEqual(names - set(known), set(), path)
        for name, labels in SELECTOR.findall(text):
            asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels))
            self.assertEqual(asked - known[name] - {"instance", "job"}, set(), f"{path}: {name}")

    def test_every_metric_and_label_of_the_rules_is_exported(self):
        self.check_names(RULES, read(RULES))

    def test_every_metric_and_label_of_the_rules_test_is_exported(self):
        self.check_names(RULES_TEST, read(RULES_TEST))

    def test_every_metric_and_label_of_the_dashboard_is_exported(self):
        texts = [text for text in expressions(json.loads(read(DASHBOARD))) if "_" in text]
        self.check_names(DASHBOARD, "\n".join(texts))

    def test_every_recorded_name_that_is_used_is_recorded(self):
        text = read(RULES)
        recorded = set(re.findall(r"record: (cgphase:\S+)", text))
        used = set(re.findall(r"cgphase:[\w:]+", text + read(RULES_TEST)))
        self.assertEqual(used, recorded)

    def test_panels_of_the_dashboard_do_not_overlap_and_have_their_own_numbers(self):
        panels = json.loads(read(DASHBOARD))["panels"]
        cells = set()
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), cells, panel["title"])
                    cells.add((x, y))
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))

    def test_phases_have_the_letters_of_the_command(self):
        panel = next(panel for panel in json.loads(read(DASHBOARD))["panels"]
                     if panel["title"] == "Phase")
        shown = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
        phases = int(re.search(r"kMaxPhases = (\d+);", read("model/model.h"))[1])
        alphabet = [chr(ord("A") + index) for index in range(26)]
        letters = alphabet + ["A" + letter for letter in alphabet]
        self.assertEqual({int(index): value["text"] for index, value in shown.items()},
                         dict(enumerate(letters[:phases])))

    def test_every_alert_is_tried(self):
        alerts = set(re.findall(r"alert: (\w+)", read(RULES)))
        tried = re.findall(r"alertname: (\w+)", read(RULES_TEST))
        self.assertEqual(set(tried), alerts)
        for alert in alerts:
            self.assertGreaterEqual(tried.count(alert), 2, f"{alert}: silent and firing")


if __name__ == "__main__":
    unittest.main()
