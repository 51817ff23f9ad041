"""The manual pages name every option of the programs, and no other. The completions offer every
verb and option."""
import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

TREE = os.path.normpath(os.path.join(os.path.dirname(__file__), "../.."))
COMMAND = os.environ.get("CGPHASE_COMMAND", "")
DAEMON = os.environ.get("CGPHASED_PROGRAM", "")
RESTORE = os.environ.get("CGPHASE_RESTORE_PROGRAM", "")

LONG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def text_of(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def page(name):
    return text_of(f"docs/man/{name}.scd").replace("\\_", "_")


def help_of(*words):
    return subprocess.run([*words, "--help"], capture_output=True, text=True, check=True).stdout


def options_in_help(text):
    """{"-o", "--output", ...} of a help text of CLI11: names are at the start of a line."""
    found = set()
    for names in re.findall(r"^  (-[-a-z,]*)(?: |$)", text, re.MULTILINE):
        found.update(names.split(","))
    return found


def verbs_in_help(text):
    """Names below "Subcommands:"."""
    return re.findall(r"^  ([a-z]+)(?: |$)", text.partition("\nSubcommands:\n")[2], re.MULTILINE)


@functools.cache
def command():
    """{("model", "show"): {"-h", ...}}, with () for the command itself."""
    found = {}

    def add(verb):
        text = help_of(COMMAND, *verb)
        found[verb] = options_in_help(text)
        for name in verbs_in_help(text):
            add((*verb, name))
    add(())
    return found


def getopt_names():
    """The option names in the table of cgphased's parser."""
    table = re.findall(r'\{"([a-z-]+)", (?:required|no)_argument', text_of("agent/main.cpp"))
    return {"--" + name for name in table}


class Manual(unittest.TestCase):
    def test_the_page_of_the_command_has_its_table_of_verbs(self):
        table = "docs/man/cgphase.1.table.scd"
        printed = subprocess.run([COMMAND, "__manual"], capture_output=True, text=True, check=True)
        self.assertEqual(printed.stdout, text_of(table),
                         f"run: {os.path.relpath(COMMAND, TREE)} __manual > {table}")

    def test_usage_and_page_of_the_daemon_name_every_option_and_no_other(self):
        options = getopt_names()
        self.assertIn("--config", options)
        self.assertEqual(options, set(LONG.findall(help_of(DAEMON))))
        described = page("cgphased.8").partition("\n# OPTIONS\n")[2].partition("\n# ")[0]
        self.assertEqual(options, set(LONG.findall(described)))

    def test_usage_and_page_of_the_restore_helper_name_every_option_and_no_other(self):
        options = set(re.findall(r'== "(--[a-z-]+)"', text_of("control/lease/restore_main.cpp")))
        self.assertIn("--watch", options)
        self.assertEqual(options, set(LONG.findall(help_of(RESTORE))))
        self.assertEqual(options, set(LONG.findall(page("cgphase-restore.8"))) - {"--all"})

    def test_no_page_names_an_option_that_no_program_has(self):
        known = set(LONG.findall(help_of(DAEMON) + help_of(RESTORE)))
        known = known.union(*command().values())
        pages = "".join(page(name) for name in (
            "cgphase.1.head", "cgphase.1.tail", "cgphase.7", "cgphased.8", "cgphase-restore.8",
            "cgphase.toml.5.head"))
        ours = re.sub(r"systemctl( --[a-z-]+)+", "", pages)  # these options are systemctl's
        named = set(LONG.findall(ours + text_of("agent/config/default_config.toml")))
        self.assertEqual(named - known, set())


# Prints what a completion offers after the words, one per line.
BASH = r"""
. packaging/completions/cgphase.bash
compopt() { :; }  # works only in a completion
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_cgphase
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
"""
ZSH = r"""
compadd() { print -l -- $@[-1] }
compset() { : }
_describe() { print -l -- ${${(P)2}%%:*} }
_files() { print -l -- *(N) }
complete_it() {
  local -a words
  words=("$@")
  local CURRENT=$# PREFIX=${@[-1]}
  . packaging/completions/cgphase.zsh
}
complete_it "$@"
"""
FISH = r"""
source packaging/completions/cgphase.fish
complete -C (string join ' ' -- $argv) | string split -f 1 \t
true
"""


class Completions(unittest.TestCase):
    def offered(self, shell, script, *words):
        path = os.path.dirname(COMMAND) + ":" + os.environ["PATH"]
        options = {"zsh": ["-f"], "fish": ["--no-config"]}.get(shell, [])
        name = "--" if shell == "fish" else shell  # the other shells take it as $0
        done = subprocess.run([shell, *options, "-c", script, name, "cgphase", *words], cwd=TREE,
                              capture_output=True, text=True, check=True,
                              env={**os.environ, "PATH": path})
        self.assertEqual(done.stderr, "")
        # zsh drops what does not begin with the word; its stand-in does not.
        return {each for each in done.stdout.split() if each.startswith(words[-1])}

    def check(self, shell, script):
        self.assertTrue(shutil.which(shell), f"install the package {shell}")
        verbs = command()
        for verb, options in verbs.items():
            with self.subTest(verb=verb):
                # A verb also accepts the options of the command.
                self.assertEqual(self.offered(shell, script, *verb, "--"),
                                 {name for name in options | verbs[()] if name[:2] == "--"})
                below = {other[-1] for other in verbs if other and other[:-1] == verb}
                if below:
                    self.assertEqual(self.offered(shell, script, *verb, ""), below)
        merge = self.offered(shell, script, "model", "merge", "--")
        self.assertIn("--only-traces", merge)
        for before in (["-o", "json"], ["--socket", "/tmp/a"], ["-q", "--color", "never"]):
            with self.subTest(before=before):
                self.assertEqual(self.offered(shell, script, *before, "model", "merge", "--"),
                                 merge)
        for words, values in (
                (["mode", ""], {"observe", "advise", "enforce", "default"}),
                (["completion", ""], {"bash", "zsh", "fish"}),
                (["--color", ""], {"auto", "always", "never"}),
                (["pin", "web", ""], {"cpu=", "memory=", "auto"}),
                (["history", "--since", "-10m", "--socket", "/tmp/no", ""], set()),
                (["top", "--sort", ""], {"cpu", "memory", "saved", "name"})):
            with self.subTest(words=words):
                self.assertEqual(self.offered(shell, script, *words), values)
        files = self.offered(shell, script, "predict", "--model", "")
        if shell == "bash":  # completes files itself if nothing is offered
            self.assertEqual(files, set())
        else:
            self.assertIn("README.md", files)
        self.assertIn("phase", self.offered(shell, script, "replay", "--policy", ""))
        if shell == "bash":  # it splits such a word into three
            self.assertIn("phase", self.offered(shell, script, "replay", "--policy", "=", "p"))
        else:
            self.assertIn("--policy=phase", self.offered(shell, script, "replay", "--policy=p"))

    def test_bash_offers_every_verb_and_option_and_no_other(self):
        self.check("bash", BASH)

    def test_fish_offers_every_verb_and_option_and_no_other(self):
        self.check("fish", FISH)
        self.assertEqual(self.offered("fish", FISH, "predict", "--model=model/default_m"),
                         {"--model=model/default_model.json"})

    def test_bash_offers_names_of_containers_as_text(self):
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "mark")
            names = ["web", f"x$(touch {mark})", f"x`touch {mark}`", "x;true", "x y", "x$HOME",
                     f"{folder}/trainer"]
            stub = os.path.join(folder, "cgphase")
            with open(stub, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\ncat <<'END'\n" + "\n".join(names) + "\n\nEND\n")
            os.chmod(stub, 0o755)
            with open(os.path.join(folder, "trace one.csv"), "w", encoding="utf-8"):
                pass

            def offered(word):
                path = folder + ":" + os.environ["PATH"]
                done = subprocess.run(["bash", "-c", BASH, "bash", "cgphase", "size", word],
                                      cwd=TREE, env={**os.environ, "PATH": path},
                                      capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "")
                return [shlex.split(line) for line in done.stdout.splitlines()]

            self.assertEqual(offered("x"), [[name] for name in names[1:-1]])
            self.assertEqual(offered(folder + "/tr"),
                             [[f"{folder}/trainer"], [f"{folder}/trace one.csv"]])
            self.assertFalse(os.path.exists(mark))

    def test_zsh_offers_every_verb_and_option_and_no_other(self):
        self.check("zsh", ZSH)


if __name__ == "__main__":
    unittest.main()
