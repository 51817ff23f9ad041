#!/usr/bin/python3
"""Checks JSON replies of the command against the schemas in packaging/schema, and that the check
would notice a key that is unknown or missing.

usage: schema_check.py FOLDER

A file of FOLDER is named after its verb, as in "show.1.json" and "model-list.2.json"."""

import copy
import functools
import json
import os
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: install the package python3-jsonschema")
    sys.exit(77)

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/schema")
# Several verbs have one schema; each other verb has its own.
SHARED = {"top": "list", **dict.fromkeys(
    ("mode", "pause", "resume", "pin", "restore", "model-install", "model-rollback"), "action")}
# Keys that an object of this name may lack; the reply itself has none.
LIMITS = {"cpu_max", "cpu_max_burst_usec", "cpu_weight", "memory_max_bytes", "memory_high_bytes",
          "memory_low_bytes", "memory_min_bytes", "frozen"}
SLEEP = {"asleep_bytes", "last_wake"}
RECORD = {"record", "first_seen", "points", "gone"}
LOOP = {"guard_raises", "backlog_core_seconds", "throttled_seconds", "longest_delay_seconds"}
OPTIONAL = {
    **dict.fromkeys(("limits", "original", "recommendation", "old_limits", "new_limits"), LIMITS),
    **dict.fromkeys(("containers", "container"), SLEEP),
    **dict.fromkeys(("decisions", "events"), {"writer", "givers"}),
    **dict.fromkeys(("gpu_utilisation", "gpu_memory_utilisation", "network_receive",
                     "network_transmit"), {"idle_seconds", "burst_seconds", "burst_consumption"}),
    "earlier": RECORD, "challenger": {"phases"}, "by_execution": LOOP,
    "policies": LOOP | {"time_to_raise_ms", "guard_threshold"},
    "models": {"phases", "features", "step_seconds", "provenance", "number", "installed_seconds",
               "current", "since_seconds"},
    "": SLEEP | RECORD | {"earlier", "compare", "assertions", "split", "change", "fixed_point"}}
# Objects that may have any key.
MAPS = {"provenance"}


def schema_name(verb):
    return SHARED.get(verb, verb)


def schema_names():
    return {name[:-len(".json")] for name in os.listdir(SCHEMAS)}


@functools.cache
def validator(verb):
    with open(os.path.join(SCHEMAS, schema_name(verb) + ".json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    resolver = jsonschema.RefResolver(f"file://{os.path.realpath(SCHEMAS)}/", schema)
    return jsonschema.Draft202012Validator(schema, resolver=resolver)


def complaints(verb, reply):
    return [f"{error.json_path}: {error.message}" for error in validator(verb).iter_errors(reply)]


def first_of_lists(value):
    if isinstance(value, dict):
        return {key: first_of_lists(each) for key, each in value.items()}
    return [first_of_lists(each) for each in value[:1]] if isinstance(value, list) else value


def objects(value, key=""):
    """Yields (key, object) for all objects within `value`."""
    if isinstance(value, dict):
        yield key, value
    below = value.items() if isinstance(value, dict) else enumerate(value) \
        if isinstance(value, list) else ()
    for name, each in below:
        yield from objects(each, name if isinstance(value, dict) else key)


def unnoticed(verb, reply):
    """Yields the changes to this valid reply with which the schema would still accept it."""
    changed = first_of_lists(copy.deepcopy(reply))
    for name, one in objects(changed):
        if name not in MAPS:
            one["no such key"] = None
            if validator(verb).is_valid(changed):
                yield f"another key in '{name}'"
            del one["no such key"]
        for key in sorted(set(one) - OPTIONAL.get(name, set()) if name not in MAPS else ()):
            value = one.pop(key)
            if validator(verb).is_valid(changed):
                yield f"no '{key}' in '{name}'"
            one[key] = value


def main(folder):
    failed, verbs = 0, set()
    for name in sorted(os.listdir(folder)):
        verb = name.split(".")[0]
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            reply = json.load(file)
        found = complaints(verb, reply)
        if not found and verb not in verbs:
            found = [f"the schema would not notice {what}" for what in unnoticed(verb, reply)]
        verbs.add(verb)
        for what in found:
            print(f"{name}: {what}")
        failed += bool(found)
    print(f"{len(verbs)} verbs, {failed} replies that their schema does not describe")
    return 1 if failed or not verbs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
