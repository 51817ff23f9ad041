"""Tests the writing rules of words.py: what each must catch, and what it must not."""

import unittest

import words
from tidy_test import TidyTest


def complaints(text, kind=".md"):
    return list(words.prose_complaints(text, kind))


def literal_complaints(text):
    return list(words.literal_complaints(text))


class Words(unittest.TestCase):
    def test_each_word_of_the_list_is_found(self):
        for sentence in (
                "The kernel tells the daemon.", "It was told once.", "The guard looks at a file.",
                "Read or look through it.", "A row stands for a container.", "It stands down.",
                "It holds it back.", "The lease holds the original.", "Whoever writes last wins.",
                "The users whom it affects.", "What is missing is absent.", "Who asks waits.",
                "Of a container, usage is read.", "It stays so long.", "The limit is none.",
                "It is said in the log."):
            with self.subTest(sentence):
                self.assertEqual(len(complaints(sentence)), 1, complaints(sentence))

    def test_a_correct_use_passes(self):
        for sentence in (
                "A label tells the two programs apart.", "A look-up takes a microsecond.",
                "The thread holds the lock.", "The rule holds everywhere.",
                "It holds no lock.", "A stand-alone program.", "A standard limit.",
                "What is a phase?", "What is new: a phase.", "Who may act?", "Of course it fails.",
                "The user who asks waits.", "It reports what it read."):
            with self.subTest(sentence):
                self.assertEqual(complaints(sentence), [])

    def test_the_line_of_the_paragraph_is_named(self):
        self.assertEqual([line for line, _ in complaints("One.\n\nTwo.\nIt tells.\n")], [3])

    def test_code_tables_and_headings_are_exempt(self):
        self.assertEqual(complaints("# What it tells\n\n| it tells | x |\n\n`it tells` nothing.\n\n"
                                    "```\nit tells\n```\n\n    it tells\n"), [])

    def test_an_indented_line_within_a_paragraph_is_prose(self):
        self.assertEqual(len(complaints("- A long item\n    that tells.\n")), 1)

    def test_the_code_of_plain_text_is_indented_by_two(self):
        self.assertEqual(complaints("Run this:\n\n  it tells\n", ".Debian"), [])

    def test_a_description_of_scdoc_is_prose(self):
        self.assertEqual(len(complaints("*-o* FILE\n\tIt tells all.\n", ".scd")), 1)

    def test_a_description_of_scdoc_may_be_a_fragment(self):
        self.assertEqual(complaints("*-o* FILE\n\tWhat the file contains.\n", ".scd"), [])


class Lengths(unittest.TestCase):
    def sentence(self, count):
        return " ".join(["word"] * count) + ".\n"

    def test_a_sentence_of_30_words_passes(self):
        self.assertEqual(complaints(self.sentence(30)), [])

    def test_a_sentence_of_31_words_fails(self):
        self.assertIn("a sentence of 31 words", complaints(self.sentence(31))[0][1])

    def test_a_stop_ends_a_sentence_an_abbreviation_does_not(self):
        self.assertEqual(complaints(self.sentence(20) + self.sentence(20)), [])
        self.assertEqual(len(complaints(self.sentence(20)[:-2] + " e.g. " + self.sentence(20))), 1)

    def test_list_items_are_separate_sentences(self):
        item = "- " + " ".join(["word"] * 20) + "\n"
        self.assertEqual(complaints(item + item), [])

    def test_code_ends_a_sentence(self):
        self.assertEqual(complaints(self.sentence(20)[:-2] + " `code`. " + self.sentence(20)), [])

    def test_code_is_one_word(self):
        self.assertEqual(complaints("Run `" + " ".join(["word"] * 40) + "` now.\n"), [])

    def test_descriptions_of_scdoc_are_separate_sentences(self):
        words_20 = " ".join(["word"] * 20)
        self.assertEqual(complaints(f"*{words_20}*\n\t{words_20}\n", ".scd"), [])
        self.assertEqual(complaints(f"\t{words_20}++\n\t{words_20}\n", ".scd"), [])


class Literals(unittest.TestCase):
    def test_a_message_is_checked(self):
        self.assertEqual(literal_complaints('int a;\nfail("the kernel tells nothing");\n'),
                         [(2, '"tells": write report, print, say')])

    def test_neighbours_are_one_message(self):
        self.assertEqual(len(literal_complaints('fail("the kernel "\n     "tells");\n')), 1)

    def test_arguments_are_separate_messages(self):
        self.assertEqual(literal_complaints('f("so", "long");\n'), [])

    def test_keys_comments_and_includes_are_not_checked(self):
        self.assertEqual(literal_complaints('f("told");\n// "it is told here"\n'
                                            '#include "told/it.h"\n'), [])

    def test_a_fragment_may_begin_with_what(self):
        self.assertEqual(literal_complaints('f("what to read now");\n'), [])


class InTheTree(TidyTest):
    def test_pages_are_checked(self):
        self.write("docs/internals/a.md", "It tells.\n")
        self.assert_complaint('docs/internals/a.md:1: "tells"')

    def test_other_files_are_not(self):
        self.write("tests/data/README.md", "It tells.\n")
        self.assert_clean()

    def test_messages_are_checked_in_the_folders_that_pass(self):
        self.write("traces/a.cpp", 'const char* a = "the kernel tells nothing";\n')
        self.write("tests/agent/a.cpp", 'const char* a = "the kernel tells nothing";\n')
        found = [one for one in self.complaints() if "tells" in one]
        self.assertEqual(found, ['traces/a.cpp:1: "tells": write report, print, say'])


if __name__ == "__main__":
    unittest.main()
