"""A rough parser of C++, enough to find where functions begin and end in formatted code."""

import re

TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/                      # comments
      |R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"      # raw strings
      |"(?:\\.|[^"\\\n])*"                      # strings
      |(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'      # characters, not digit separators
    """, re.S | re.X)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
HAS_BODY = re.compile(
    r"\)\s*(?:(?:const|noexcept|override|final|mutable|try|&&?)\s*|noexcept\([^)]*\)\s*"
    r"|->[^;{}]*|requires[^;{}]*|:(?!:)[^;]*)*$")
CONTAINER = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")


def without_text(source):
    """`source` with comments, literals and preprocessor lines blanked, line for line."""
    def blank(match):
        text = match.group(0)
        keep = '""' if text[0] in '"R\'' else ""
        return keep + "\n" * text.count("\n")
    code = TOKENS.sub(blank, source)
    return PREPROCESSOR.sub(lambda match: "\n" * match.group(0).count("\n"), code)


def functions(source):
    """(first line, number of lines) of every function definition that is not inside another."""
    code = without_text(source)
    found, depth, start, body_depth, since = [], 0, 0, None, 0
    for at, char in enumerate(code):
        if char == "{":
            if body_depth is None and is_function(code[since:at]):
                body_depth = depth
                start = since + len(code[since:at]) - len(code[since:at].lstrip())
            depth += 1
        elif char == "}":
            depth -= 1
            # `a_{1}, b_{2} {` is still before the body of a constructor.
            if depth == body_depth and code[at + 1:].lstrip()[:1] not in (",", "{"):
                first = code.count("\n", 0, start) + 1
                found.append((first, code.count("\n", 0, at) + 2 - first))
                body_depth = None
        if body_depth is None and char in "{};":
            since = at + 1
    return found


def is_function(text):
    """Whether `text`, up to a brace, is the head of a function rather than of a type or a value."""
    if not HAS_BODY.search(text):
        return False
    head = text.strip()
    return not (CONTAINER.match(head) and "(" not in CONTAINER.sub("", head))
