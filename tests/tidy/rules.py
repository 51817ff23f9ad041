#!/usr/bin/python3
"""Checks that each safety rule has a test.

usage: rules.py [--table] [--allow-missing-table] ROOT

The rules are the rows of docs/safety.md that begin with an id, "| S-07 |" or "| MEM-02 |"; one may
have several rows. A comment names the rules that a test proves: "// rule: S-07, MEM-02" directly
above a TEST_CASE, or "# rule: S-07" among the first lines of a script. It complains about an id
without a row, a rule without a test, and a comment that is above no test.

  --table                print the rules and their tests as a markdown table
  --allow-missing-table  accept a docs/safety.md without such rows, for a tree that has none yet
"""

import os
import re
import sys

DOCUMENT = "docs/safety.md"
ID = r"[A-Z]+-\d\d"
ROW = re.compile(rf"^\| ({ID}) \|", re.M)
CPP_TAG = re.compile(rf"^\s*// rule: ({ID}(?:, {ID})*)$")
SCRIPT_TAG = re.compile(rf"^# rule: ({ID}(?:, {ID})*)$")
ANY_TAG = re.compile(r"^\s*(//|#) rule:")
CASE = re.compile(r'^\s*TEST_CASE(?:_FIXTURE)?\(\s*(?:\w+,\s*)?((?:"(?:[^"\\]|\\.)*"\s*)+)')
SCRIPT_LINES = 20  # a script's tags are among its first lines
SCRIPTS = (".sh", ".py")


def test_files(root):
    for folder, folders, files in os.walk(os.path.join(root, "tests")):
        folders[:] = sorted(name for name in folders if name not in ("data", "corpus", "golden"))
        for name in sorted(files):
            if name.endswith((".cpp",) + SCRIPTS):
                yield os.path.relpath(os.path.join(folder, name), root)


def case_below(lines, at):
    """The name of the test case whose TEST_CASE is the next line of code, or None."""
    while at < len(lines) and lines[at].lstrip().startswith("//"):
        at += 1
    found = CASE.match("\n".join(lines[at:at + 4]))
    return re.sub(r'"\s*"', "", found.group(1).strip())[1:-1] if found else None


def tags_of(path, text, complaints):
    """(id, test) of the tags in one file."""
    lines = text.split("\n")
    script = path.endswith(SCRIPTS)
    for number, line in enumerate(lines, 1):
        if not ANY_TAG.match(line):
            continue
        found = (SCRIPT_TAG if script else CPP_TAG).match(line)
        name = None if script else case_below(lines, number)
        if not found:
            complaints.append(f'{path}:{number}: write "rule: S-07, MEM-02"')
        elif script and number > SCRIPT_LINES:
            complaints.append(f"{path}:{number}: tags are among the first {SCRIPT_LINES} lines")
        elif not script and name is None:
            complaints.append(f"{path}:{number}: no TEST_CASE follows this tag")
        else:
            for rule in found.group(1).split(", "):
                yield rule, (path, name)


def check(root, allow_missing=False):
    """The complaints, and {id: [(path, name of the test or None)]} in the order of the rules."""
    complaints = []
    try:
        with open(os.path.join(root, DOCUMENT), encoding="utf-8") as file:
            rows = ROW.findall(file.read())
    except FileNotFoundError:
        rows = []
    if not rows and not allow_missing:
        complaints.append(f"{DOCUMENT}: {DOCUMENT} has no rule table")
    tests = {rule: [] for rule in rows}
    for path in test_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for rule, test in tags_of(path, file.read(), complaints):
                if rows and rule not in tests:
                    complaints.append(f"{path}: {DOCUMENT} has no rule {rule}")
                else:
                    tests.setdefault(rule, []).append(test)
    complaints += [f"{DOCUMENT}: rule {rule} has no test" for rule in tests if not tests[rule]]
    return complaints, tests


def table(tests):
    lines = ["| rule | tests |", "|---|---|"]
    for rule in tests:
        names = [f"`{path}`" + (f": {name}" if name else "") for path, name in tests[rule]]
        lines.append(f"| {rule} | {'<br>'.join(names).replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def main(arguments):
    options = {word for word in arguments if word.startswith("--")}
    roots = [word for word in arguments if word not in options]
    if len(roots) != 1 or options - {"--table", "--allow-missing-table"}:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    complaints, tests = check(roots[0], "--allow-missing-table" in options)
    if "--table" in options:
        print(table(tests))
    for what in complaints:
        print(what, file=sys.stderr)
    if "--table" not in options:
        print(f"{len(tests)} rules, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
