"""The writing rules of CONTRIBUTING.md that a program can check: words, and sentence length.

`prose_complaints` judges a page (markdown, scdoc or plain text); code, tables and headings are
exempt. `literal_complaints` judges the string literals of a C++ file, by the words alone. Both
yield (line, what).
"""

import re

MAX_SENTENCE_WORDS = 30  # 25 is the aim
# The string literals below these folders are judged. A folder joins once it passes.
CHECKED_FOLDERS = ("agent/http/", "agent/logging/", "agent/server/", "base/", "bench/",
                   "cgroupfs/", "cli/", "cmake/", "collectors/containers/", "collectors/gpu/",
                   "control/", "core/", "lab/", "model/", "policy/", "protocol/", "storage/",
                   "traces/", "tests/arm64/", "tests/base/", "tests/cgroupfs/", "tests/cli/",
                   "tests/control/", "tests/core/", "tests/engines/", "tests/fuzz/",
                   "tests/kernel/", "tests/lab/", "tests/model/", "tests/packaging/",
                   "tests/policy/", "tests/simulator/", "tests/traces/", "tests/workloads/")

# A pattern and its replacement. Each pattern catches one use that makes a sentence hard to read,
# and as few other uses as possible.
NEVER = tuple((re.compile(pattern, re.I), advice) for pattern, advice in (
    (r"\b(tells?|told|telling)\b(?! (\w+ ){0,3}apart\b)", "report, print, say"),
    (r"\b(looks?|looked|looking) (at|into|through|on|after)\b", "read, scan, check"),
    (r"\b(stands?|stood|standing) (in|for|at|beside|between|behind|there|here|down|as|before|"
     r"below|above)\b", "is, lies, replaces, yields"),
    (r"\b(holds?|held|holding) (back|up|open|down|it|them|what|its?|every|all|any|as many)\b",
     "keep, block, record, contain"),
    (r"\b(holds?|held|holding) (the|a|an) (?!((\w|-)+ ){0,2}(locks?|mutex)\b)",
     "keep, block, record, contain"),
    (r"\b(whoever|whosoever|whom)\b", "the name of the program, user or process"),
    (r"^(?-i:What(ever)?)\b(?!.*\?$)(?!.*:)", "the name of the thing"),
    (r"^(?-i:Who)\b(?!.*\?$)", "the name of the program, user or process"),
    (r"^(?-i:Of) (?!course\b)[^,]+, ", "the subject first"),
    (r"\bso long\b", "while, as long as, for that time"),
    (r"\b(is|are|was|were|there be) none\b", "there is no ..., does not exist"),
    (r"\bit is (said|told)\b|\bis said to\b", "which program reports it"),
))

FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^(#|=+$|-+$)")
TABLE = {".scd": re.compile(r"[|\[\]:]"), ".md": re.compile(r"\s*\|")}
ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+")
CODE = re.compile(r"``[^`]+``|`[^`]+`")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
MARKUP = re.compile(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}")
# A sentence ends at a stop, closing marks, and a space.
END = re.compile(r"[.!?][\"')\]*_]*(?=\s)")
ABBREVIATION = re.compile(r"(\b(e\.g|i\.e|vs|cf)|\b[A-Z])\.$")
MESSAGE_WORDS = 3  # a literal with fewer words is a key or a name
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# Indentation of code without a fence. scdoc indents descriptions, not code.
INDENTED_CODE = {".md": re.compile(r" {4}|\t"), ".Debian": re.compile(r" {2}")}


def is_page(path):
    """Whether the file is prose for people."""
    return path in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md",
                    "packaging/deb/README.Debian") or \
        path.startswith("docs/") and path.endswith((".md", ".scd"))


def paragraphs(text, kind):
    """(line, text) of the paragraphs and list items; exempt lines are left out."""
    code, table = INDENTED_CODE.get(kind), TABLE.get(kind, TABLE[".md"])
    fenced, first, tabs, words = False, 0, 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        if FENCE.match(line):
            fenced = not fenced
            line = ""
        exempt = fenced or not line.strip() or HEADING.match(line) or table.match(line) or \
            code is not None and not words and code.match(line)
        depth = len(line) - len(line.lstrip("\t"))
        if words and (exempt or ITEM.match(line) or depth != tabs or words[-1].endswith("++")):
            yield first, " ".join(words)
            words = []
        if not exempt:
            if not words:
                first, tabs = number, depth
            words.append(ITEM.sub("", line).strip())


def plain(paragraph):
    """Without code and markup: code counts as one word."""
    return MARKUP.sub("", LINK.sub(r"\1", CODE.sub("code", paragraph)))


def sentences(paragraph):
    begin = 0
    for end in END.finditer(paragraph):
        if not ABBREVIATION.search(paragraph[begin:end.end()]):
            yield paragraph[begin:end.end()].strip()
            begin = end.end()
    if paragraph[begin:].strip():
        yield paragraph[begin:].strip()


def word_complaints(sentence, fragment=False):
    """A fragment, such as the description of an option, may begin with any word."""
    for pattern, advice in NEVER:
        if fragment and pattern.pattern.startswith("^"):
            continue
        found = pattern.search(sentence)
        if found:
            yield f'"{" ".join(found.group(0).split()[:3])}": write {advice}'


def prose_complaints(text, kind=".md"):
    for line, paragraph in paragraphs(text, kind):
        for at, sentence in enumerate(sentences(plain(paragraph))):
            for what in word_complaints(sentence, fragment=kind == ".scd" and at == 0):
                yield line, what
            count = sum(1 for word in sentence.split() if re.search(r"\w", word))
            if count > MAX_SENTENCE_WORDS:
                yield line, f"a sentence of {count} words, more than {MAX_SENTENCE_WORDS}: " \
                            f"{' '.join(sentence.split()[:6])} ..."


def literals(text):
    """(line, text) of the string literals; neighbours are joined, as by the compiler."""
    parts, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        code = re.sub(r"^\s*(//|#\s*include).*", "", line)
        behind = 0  # the end of the previous literal in this line
        for one in LITERAL.finditer(code):
            if parts and code[behind:one.start()].strip():
                yield first, "".join(parts)
                parts = []
            if not parts:
                first = number
            parts.append(one.group(0)[1:-1])
            behind = one.end()
        if parts and code[behind:].strip():
            yield first, "".join(parts)
            parts = []
    if parts:
        yield first, "".join(parts)


def literal_complaints(text):
    for line, literal in literals(text):
        if len(literal.split()) >= MESSAGE_WORDS:
            for sentence in sentences(literal.replace("\\n", " ")):
                for what in word_complaints(sentence):
                    yield line, what
