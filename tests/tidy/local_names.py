"""Names of anonymous namespaces that clash when the files of a library are compiled as one."""

import os
import re

import cpp_text
import include_table

OTHER = re.compile(r"(?:using (?:enum|namespace)|namespace|extern|friend|static_assert|TEST_\w+)\b"
                   r"|[,)]")
GROUP = re.compile(r"\bcgphase_(?:library|program|test)\(\s*(\w+)([^)]*)\)")
ALONE = re.compile(r"set_source_files_properties\(([^)]*)SKIP_UNITY_BUILD_INCLUSION\s+ON", re.S)
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\b\s*([\w:]*)$|^extern\s*\"\"$")
TYPE = re.compile(r"^(?:typedef\s+)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
                  r"(?:alignas\([^)]*\)\s*|\[\[.*?\]\]\s*)?(\w+)\s*(?:final\s*)?(?::.*)?$", re.S)
ALIAS = re.compile(r"^using\s+(?:(\w+)\s*=(.*)|([\w:]+::(\w+)))$", re.S)
FUNCTION = re.compile(r"([\w:~]+)\s*\(")
VARIABLE = re.compile(r"\b([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")


def declarations(source):
    """(line, name, signature, is it local to its file) of every definition and function declaration
    in the namespaces of formatted code. The signature of a function is the types of its parameters,
    that of an alias is its target; else it is None."""
    code = cpp_text.without_text(source)
    inside, since = [], 0  # for each open brace: the namespace's name, or None for anything else
    for at, char in enumerate(code):
        if char not in "{};":
            continue
        head = " ".join(code[since:at].split())
        if None not in inside and head:
            name, signature = declared(head, char)
            if name:
                yield code.count("\n", 0, at) + 1, name, signature, "" in inside
        if char == "{":
            namespace = NAMESPACE.match(head)
            inside.append((namespace.group(1) or "") if namespace else None)
        elif char == "}" and inside:
            inside.pop()
        # `a = {1}, b` and `int x{1};` continue after the brace: nothing is declared there.
        since = at + 1


def declared(head, end):
    """The name that `head`, up to a brace or a semicolon, declares, and its signature."""
    head = re.sub(r"^template\s*<.*?>\s*(?=\w)", "", head)
    if OTHER.match(head) or "operator" in head:
        return None, None
    alias, kind = ALIAS.match(head), TYPE.match(head)
    if alias:
        return alias.group(1) or alias.group(4), ("=", (alias.group(2) or alias.group(3)).strip())
    if kind:
        return kind.group(1) if end == "{" else None, None
    value = head.split("=")[0].strip()
    function = FUNCTION.search(value)
    if function:
        name = function.group(1)
        return (None if "::" in name else name), types_of(value[function.end():])
    variable = VARIABLE.search(value)
    return (variable.group(1) if variable and " " in value else None), None


def types_of(parameters):
    depth, found, text = 1, [], ""
    for char in parameters:
        depth += (char in "(<") - (char in ")>")
        if depth == 0 or (char == "," and depth == 1):
            found.append(re.sub(r"(?<=[\s&*])\w+$", "", text.strip()).strip())
            text = ""
            if depth == 0:
                break
        else:
            text += char
    return tuple(found)


def groups(paths, text_of):
    """For each library or program: the .cpp files that it joins."""
    for path in paths:
        if os.path.basename(path) != "CMakeLists.txt":
            continue
        folder, text = os.path.dirname(path), text_of(path)
        alone = {word for words in ALONE.findall(text) for word in words.split()}
        for _, words in GROUP.findall(text):
            sources = [word for word in words.split() if word.endswith(".cpp")]
            yield [os.path.normpath(os.path.join(folder, source)) for source in sources
                   if source not in alone]


def included(sources, text_of, known):
    """The project's headers that `sources` include, directly or indirectly."""
    found, waiting = set(), list(sources)
    while waiting:
        path = waiting.pop()
        for _, quoted, header in include_table.includes_of(text_of(path).split("\n")):
            if quoted and header in known and header not in found:
                found.add(header)
                waiting.append(header)
    return found


def meet(one, other):
    """Whether two declarations of one name conflict. Functions differ by their parameter types, and
    the same alias may be declared twice."""
    if one is None or other is None:
        return True
    alias = one[:1] == ("=",) or other[:1] == ("=",)
    return (one == other) != alias


def clashes(paths, text_of):
    """(path, line, what) of every local name that is also in another file of its library, or in a
    header that the library includes."""
    known, of_file = set(paths), {}

    def read(path):
        if path not in of_file:
            of_file[path] = list(declarations(text_of(path)))
        return of_file[path]

    for sources in groups(paths, text_of):
        sources = [path for path in sources if path in known]
        seen = {}  # name: [(signature, where)]
        for header in included(sources, text_of, known):
            for _, name, signature, local in read(header):
                if not local:
                    seen.setdefault(name, []).append((signature, header))
        for path in sources:
            for line, name, signature, local in read(path):
                if not local:
                    continue
                for other, where in seen.get(name, []):
                    if where != path and meet(signature, other):
                        yield path, line, f"{name} is a name of {where}, too: they clash in a " \
                                          "build that joins files"
                seen.setdefault(name, []).append((signature, path))
