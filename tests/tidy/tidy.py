#!/usr/bin/python3
"""Checks the project's rules that a program can check.

usage: tidy.py ROOT [BUILD]

Prints one line per complaint, "path:line: what", and exits with 1 if there is any. BUILD is a build
folder that has compile_commands.json. With it, every .cpp must be built there, and each header that
no .cpp includes first is compiled alone. shellcheck reads the scripts if it is installed.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import cpp_text
import include_table
import local_names
import words

MAX_COLUMNS = 100
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
# The words are split, or this file would complain about itself.
MARK = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
HOME_PATH = re.compile(r"(?<![\w.$}/-])/(?:home/\w+|root)/")
MAX_COLUMNS_IN = {".h", ".cpp", ".c", ".py", ".cmake", ".sh", "CMakeLists.txt", "script",
                  "makefile"}
# Files that a program wrote, or that a test needs unchanged.
RECORDED = re.compile(r"^(tests/.*(data|corpus|golden)/|model/default_model\.json$|LICENSE$)")
# A reload of systemd resets the limits of containers and takes GPUs away from running ones. So
# nothing that is installed may cause a reload, nor write a file that needs one. Some verbs of
# systemctl reload, and so does deb-systemd-helper when it changes a link.
INSTALLED_FOLDERS = ("agent/", "base/", "cgroupfs/", "cli/", "collectors/", "control/", "core/",
                     "lab/", "model/", "packaging/", "policy/", "protocol/", "storage/", "systemd/",
                     "traces/")
RELOAD = re.compile(
    r"""daemon-re(load|exec)|"Re(load|execute)"|\bManager[. ]Re(load|execute)\b"""
    r"""|\b(systemctl\b(?!.*\s--no-reload\b)|deb-systemd-helper\b)"""
    r""".*\b(enable|disable|reenable|mask|unmask|preset|link|edit|revert|purge)\b"""
    r"""|/(etc|run)/systemd/system(\.control|\.attached)?/(?!\*\.(wants|requires|upholds)/)""")
GENERATED_FOLDERS = {"build", "__pycache__", ".git", ".cache"}


class Tree:
    """The files below `root`, by their paths relative to it, and the complaints about them."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.complaints = []
        parent = os.path.dirname(self.root)
        # The path of this tree, which is specific to one machine. "/tmp/" alone would say nothing.
        self.own_paths = [path + "/" for path in (self.root, parent) if path.count("/") > 1]
        self.paths = sorted(self._walk())
        self._texts = {}

    def _walk(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in GENERATED_FOLDERS]
            for name in files:
                path = os.path.join(folder, name)
                if not os.path.islink(path) and name not in GENERATED_FOLDERS:
                    yield os.path.relpath(path, self.root)

    def full(self, path):
        return os.path.join(self.root, path)

    def text(self, path):
        """The file's text; None if it is not text."""
        if path not in self._texts:
            with open(self.full(path), "rb") as file:
                content = file.read()
            try:
                self._texts[path] = None if b"\0" in content else content.decode()
            except UnicodeDecodeError:
                self._texts[path] = None
        return self._texts[path]

    def lines(self, path):
        return self.text(path).split("\n")

    def complain(self, path, line, what):
        self.complaints.append((path, line, what))


def kind_of(tree, path):
    name = os.path.basename(path)
    if (tree.text(path) or "").startswith("#!"):
        return "makefile" if "make" in tree.lines(path)[0] else "script"
    return name if name == "CMakeLists.txt" else os.path.splitext(name)[1]


def is_cpp(path):
    return path.endswith((".h", ".cpp", ".c"))


def check_lines(tree):
    for path in tree.paths:
        text = tree.text(path)
        if text is None or RECORDED.match(path):
            continue
        if text and not text.endswith("\n"):
            tree.complain(path, text.count("\n") + 1, "no newline at the end of the file")
        kind = kind_of(tree, path)
        for number, line in enumerate(tree.lines(path), 1):
            for what in line_complaints(tree, kind, line):
                tree.complain(path, number, what)


def line_complaints(tree, kind, line):
    if kind in MAX_COLUMNS_IN and len(line) > MAX_COLUMNS:
        yield f"{len(line)} columns, more than {MAX_COLUMNS}"
    if line != line.rstrip():
        yield "blanks at the end of the line"
    if "\t" in line and kind in MAX_COLUMNS_IN and kind != "makefile":
        yield "a tab"
    if MARK.search(line):
        yield f"an unfinished mark: {MARK.search(line).group(0)}"
    if HOME_PATH.search(line) or any(path in line for path in tree.own_paths):
        yield "a path of one machine"


def check_sizes(tree):
    for path in tree.paths:
        kind = kind_of(tree, path)
        if tree.text(path) is None or not (is_cpp(path) or kind in ("script", ".py")):
            continue
        count = tree.text(path).count("\n")
        if count > MAX_FILE_LINES:
            tree.complain(path, count, f"{count} lines, more than {MAX_FILE_LINES}")
        if is_cpp(path):
            for first, length in cpp_text.functions(tree.text(path)):
                if length > MAX_FUNCTION_LINES:
                    tree.complain(path, first, f"a function of {length} lines, more than "
                                               f"{MAX_FUNCTION_LINES}")


def check_headers(tree):
    for path in tree.paths:
        if not path.endswith(".h") or tree.text(path) is None:
            continue
        code = [line for line in cpp_lines(tree.text(path)) if line.strip()]
        if not code or code[0].strip() != "#pragma once":
            tree.complain(path, 1, "the first line of code is not #pragma once")
        for number, line in enumerate(cpp_lines(tree.text(path)), 1):
            if re.match(r"\s*using\s+namespace\b", line):
                tree.complain(path, number, "using namespace in a header")


def cpp_lines(text):
    """The lines of `text` without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: "\n" * match.group(0).count("\n"), text,
                  flags=re.S).split("\n")


def check_includes(tree):
    for path in tree.paths:
        if not is_cpp(path) or tree.text(path) is None:
            continue
        if include_table.folder_of(path) is None:
            tree.complain(path, 1, "is in no folder of the include table")
            continue
        for number, quoted, header in include_table.includes_of(tree.lines(path)):
            what = include_table.project_complaint(path, header) if quoted else \
                include_table.outside_complaint(path, header)
            if what:
                tree.complain(path, number, what)


def check_reloads(tree):
    for path in tree.paths:
        if not path.startswith(INSTALLED_FOLDERS) or tree.text(path) is None or \
                path.endswith((".md", "README.Debian")) or path.startswith("packaging/deb/tests/"):
            continue
        lines = cpp_lines(tree.text(path)) if is_cpp(path) else \
            [re.sub(r"(^|\s)#.*", "", line) for line in tree.lines(path)]
        for number, line in enumerate(lines, 1):
            if RELOAD.search(line):
                tree.complain(path, number,
                              f"makes systemd reload: {RELOAD.search(line).group(0)}")


def check_names(tree):
    for path in tree.paths:
        if is_cpp(path) and not re.fullmatch(r"[a-z0-9_/]+\.(bpf\.)?(h|cpp|c)", path):
            tree.complain(path, 1, "file names are snake_case")


def check_local_names(tree):
    texts = [path for path in tree.paths if tree.text(path) is not None]
    for path, line, what in local_names.clashes(texts, tree.text):
        tree.complain(path, line, what)


def check_words(tree):
    for path in tree.paths:
        if tree.text(path) is None:
            continue
        found = ()
        if words.is_page(path):
            found = words.prose_complaints(tree.text(path), os.path.splitext(path)[1])
        elif is_cpp(path) and path.startswith(words.CHECKED_FOLDERS):
            found = words.literal_complaints(tree.text(path))
        for line, what in found:
            tree.complain(path, line, what)


def check_scripts(tree):
    shell_scripts = []
    for path in tree.paths:
        text = tree.text(path)
        executable = os.stat(tree.full(path)).st_mode & 0o111 != 0
        script = text is not None and text.startswith("#!")
        if script and not executable:
            tree.complain(path, 1, "a script that is not executable")
        if text and executable and not script:
            tree.complain(path, 1, "executable, but not a script")
        if script and re.match(r"#!.*\b(ba|da)?sh\b", text):
            shell_scripts.append(path)
    if not shell_scripts:
        return
    if shutil.which("shellcheck") is None:
        print("note: shellcheck is not installed, so the scripts were not checked")
        return
    found = subprocess.run(["shellcheck", "-S", "warning", "-x", "-f", "gcc"] + shell_scripts,
                           cwd=tree.root, stdout=subprocess.PIPE, text=True, check=False)
    for match in re.finditer(r"^(.*?):(\d+):\d+: (.*)$", found.stdout, re.M):
        tree.complain(match.group(1), int(match.group(2)), match.group(3))


def lonely_headers(tree):
    """Headers that no .cpp and no BPF program proves complete by including them first, as if
    compiled alone (scripts/package). Headers that only tests and benchmarks use are left out: they
    take minutes."""
    proved = set()
    for path in tree.paths:
        if path.endswith((".cpp", ".bpf.c")) and tree.text(path) is not None:
            first = next(include_table.includes_of(tree.lines(path)), None)
            if first and first[1]:
                proved.add(first[2])
    return [path for path in tree.paths if path.endswith(".h") and path not in proved
            and not path.startswith(("tests/", "bench/"))]


def compile_flags(tree, build):
    """The compiler and flags of every .cpp that is built, without output, input and precompiled
    headers. Joined files are in a file of #include lines that CMake generates."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    flags = {}
    for entry in entries:
        words = shlex.split(entry["command"])
        keep = [word for at, word in enumerate(words)
                if not {word, words[at - 1]} & {"-o", "-c", "-include"}]
        source = os.path.join(entry["directory"], entry["file"])
        flags[os.path.relpath(source, tree.root)] = keep
        if "/Unity/unity_" in source:
            with open(source, encoding="utf-8") as file:
                parts = re.findall(r'^#include "(.+\.cpp)"$', file.read(), re.MULTILINE)
            paths = [os.path.relpath(part, tree.root) for part in parts]
            flags.update(dict.fromkeys(paths, keep))
    return flags


def check_built(tree, flags):
    for path in tree.paths:
        if path.endswith(".cpp") and path not in flags:
            tree.complain(path, 1, "no CMakeLists.txt builds it")


def flags_for(header, flags):
    """The flags of the source file nearest to `header`."""
    folder = header
    while folder:
        folder = os.path.dirname(folder)
        for path, words in sorted(flags.items()):
            if os.path.dirname(path).startswith(folder):
                return words
    return []


def check_headers_compile(tree, flags):
    waiting, running = lonely_headers(tree), []
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            path = waiting.pop(0)
            command = flags_for(path, flags) + ["-fsyntax-only", "-w", "-x", "c++", "-include",
                                                tree.full(path), os.devnull]
            running.append((path, subprocess.Popen(command, cwd=tree.root, text=True,
                                                   stderr=subprocess.PIPE)))
        path, process = running.pop(0)
        errors = process.communicate()[1]
        if process.returncode != 0:
            tree.complain(path, 1, "does not compile alone: " + errors.strip().split("\n")[0])


def check(root, build=None):
    """All complaints about the tree at `root`, as (path, line, what)."""
    tree = Tree(root)
    for rule in (check_lines, check_sizes, check_headers, check_includes, check_reloads,
                 check_names, check_local_names, check_words, check_scripts):
        rule(tree)
    if build:
        flags = compile_flags(tree, build)
        check_built(tree, flags)
        check_headers_compile(tree, flags)
    return sorted(tree.complaints)


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    complaints = check(*arguments)
    for path, line, what in complaints:
        print(f"{path}:{line}: {what}")
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
