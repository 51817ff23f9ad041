#!/usr/bin/python3
"""The strict parser of Prometheus' Python client reads the page for scrapes.

openmetrics_test.py PRINT_METRICS"""

import subprocess
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("skipped: install the package python3-prometheus-client")
    sys.exit(77)


def main():
    page = subprocess.run([sys.argv[1], "openmetrics"], check=True, capture_output=True).stdout
    families = list(text_string_to_metric_families(page.decode()))
    names = {family.name for family in families}
    assert len(families) == len(names) > 30, sorted(names)
    info = [sample for family in families if family.name == "cgphase_container"
            for sample in family.samples]
    assert {sample.labels["name"] for sample in info} >= {"web-1"}, info
    hostile = next(sample for sample in info if sample.labels["name"] != "web-1")
    assert hostile.labels["name"].startswith('\\x1b[31m\\x1b]0;x\\x07<b>"\\x0d\\x0a\\xff'), hostile
    print(f"{len(families)} families, {sum(len(family.samples) for family in families)} samples")


main()
