"""Tests what rules.py accepts and rejects, on small trees."""

import os
import tempfile
import unittest

import rules

DOCUMENT = "| rule | says |\n|---|---|\n| S-01 | one |\n| S-02 | two |\n"
BOTH = '// rule: S-01, S-02\nTEST_CASE("a fact") {\n}\n'


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cgphase-rules-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("docs/safety.md", DOCUMENT)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def complaints(self, **options):
        return rules.check(self.root, **options)[0]

    def test_rules_with_tests_pass(self):
        self.write("tests/a_test.cpp", BOTH)
        self.assertEqual(self.complaints(), [])

    def test_a_rule_without_a_test(self):
        self.write("tests/a_test.cpp", '// rule: S-02\nTEST_CASE("a fact") {\n}\n')
        self.assertEqual(self.complaints(), ["docs/safety.md: rule S-01 has no test"])

    def test_a_tag_of_no_rule(self):
        self.write("tests/a_test.cpp", BOTH + '// rule: S-03\nTEST_CASE("b") {\n}\n')
        self.assertEqual(self.complaints(), ["tests/a_test.cpp: docs/safety.md has no rule S-03"])

    def test_a_tag_above_no_test(self):
        self.write("tests/a_test.cpp", BOTH + "// rule: S-01\nint a;\n")
        self.assertEqual(self.complaints(), ["tests/a_test.cpp:4: no TEST_CASE follows this tag"])

    def test_a_comment_between_tag_and_test_passes(self):
        self.write("tests/a_test.cpp", BOTH.replace("\n", "\n// Why.\n", 1))
        self.assertEqual(self.complaints(), [])

    def test_a_tag_in_another_form(self):
        self.write("tests/a_test.cpp", BOTH + '// rule: S1\nTEST_CASE("b") {\n}\n')
        self.assertEqual(self.complaints(), ['tests/a_test.cpp:4: write "rule: S-07, MEM-02"'])

    def test_a_script_is_tagged_near_the_top(self):
        self.write("tests/a.sh", "#!/bin/bash\n# rule: S-01\n")
        self.write("tests/b.py", "#!/usr/bin/python3\n# rule: S-02\n")
        self.assertEqual(self.complaints(), [])

    def test_a_script_that_is_tagged_further_down(self):
        self.write("tests/a_test.cpp", BOTH)
        self.write("tests/a.sh", "#\n" * 20 + "# rule: S-01\n")
        self.assertEqual(self.complaints(), ["tests/a.sh:21: tags are among the first 20 lines"])

    def test_a_rule_of_two_rows(self):
        self.write("tests/a_test.cpp", BOTH)
        self.write("docs/safety.md", DOCUMENT + "| S-02 | again |\n")
        self.assertEqual(self.complaints(), [])

    def test_ids_have_groups(self):
        self.write("tests/a_test.cpp", BOTH.replace("S-02", "S-02, MEM-01"))
        self.write("docs/safety.md", DOCUMENT + "| MEM-01 | three |\n")
        self.assertEqual(self.complaints(), [])

    def test_a_document_without_rules(self):
        self.write("docs/safety.md", "Words.\n")
        self.write("tests/a_test.cpp", BOTH)
        self.assertEqual(self.complaints(), ["docs/safety.md: docs/safety.md has no rule table"])
        self.assertEqual(self.complaints(allow_missing=True), [])

    def test_the_table_names_the_tests_of_each_rule(self):
        self.write("tests/a_test.cpp", '// rule: S-01\nTEST_CASE_FIXTURE(World,\n'
                                       '                  "a "\n                  "fact") {\n}\n')
        self.write("tests/a.sh", "#!/bin/bash\n# rule: S-02\n")
        self.assertEqual(rules.table(rules.check(self.root)[1]).split("\n")[2:],
                         ["| S-01 | `tests/a_test.cpp`: a fact |", "| S-02 | `tests/a.sh` |"])


if __name__ == "__main__":
    unittest.main()
