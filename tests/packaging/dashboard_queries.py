#!/usr/bin/python3
"""Reads a page of metrics and prints a test for promtool. In the test Prometheus must answer each
query of the dashboard, with all hosts and containers chosen, and find something."""

import json
import os
import re
import sys

DASHBOARD = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "../../packaging/grafana/grafana-dashboard.json")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def series(page):
    kind = ""
    for line in page:
        if line.startswith("# TYPE "):
            kind = line.split()[3]
        sample = SAMPLE.match(line)
        if not sample or line.startswith("#"):
            continue
        name, labels, value = sample.groups()
        labels = ",".join(filter(None, [labels, 'instance="one:9464"', 'job="cgphase"']))
        grows = kind == "gauge" and "+0x120" or "+1x120"
        yield {"series": f"{name}{{{labels}}}", "values": value + grows}


def queries():
    with open(DASHBOARD, encoding="utf-8") as file:
        for panel in json.load(file)["panels"]:
            for target in panel["targets"]:
                yield target["expr"].replace("$instance", ".*").replace("$name", ".*")


def main():
    tests = [{"expr": f"count({query}) > bool 0", "eval_time": "90m",
              "exp_samples": [{"labels": "{}", "value": 1}]} for query in queries()]
    found = list(series(sys.stdin))
    if len(tests) < 16 or len(found) < 60:
        sys.exit(f"{len(tests)} queries, {len(found)} series: too few to prove anything")
    json.dump({"evaluation_interval": "1m",
               "tests": [{"interval": "1m", "input_series": found,
                          "promql_expr_test": tests}]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
