"""Tests each rule of tidy.py on small trees that break it and on trees that just pass."""
# rule: S-10

import json
import os
import tempfile
import unittest

import cpp_text
import include_table
import tidy

MARK = "TO" + "DO"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cgphase-tidy-")
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.join(self.folder.name, "tree")
        os.mkdir(self.root)

    def write(self, path, text, mode=0o644):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(full, mode)

    def build(self, *sources, flags=""):
        """A build folder in which exactly `sources` are built, with `flags`."""
        build = os.path.join(self.root, "build")
        os.makedirs(build, exist_ok=True)
        with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump([{"directory": build, "file": os.path.join(self.root, source),
                        "command": f"g++ -std=c++20 -I{self.root} {flags} -o x.o -c {source}"}
                       for source in sources], file)
        return build

    def complaints(self, build=None):
        return [f"{path}:{line}: {what}" for path, line, what in tidy.check(self.root, build)]

    def assert_complaint(self, part, build=None):
        found = self.complaints(build)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def assert_clean(self, build=None):
        self.assertEqual(self.complaints(build), [])


class Lines(TidyTest):
    def test_a_line_of_100_columns_passes(self):
        self.write("base/a.cpp", "//" + "x" * 98 + "\n")
        self.assert_clean()

    def test_a_line_of_101_columns_fails(self):
        self.write("base/a.cpp", "//" + "x" * 99 + "\n")
        self.assert_complaint("base/a.cpp:1: 101 columns")

    def test_columns_are_characters(self):
        self.write("base/a.cpp", "//" + "\u00e9" * 98 + "\n")
        self.assert_clean()

    def test_a_tab(self):
        self.write("base/a.cpp", "int a;\n\tint b;\n")
        self.assert_complaint("base/a.cpp:2: a tab")

    def test_a_tab_of_a_makefile(self):
        self.write("packaging/deb/rules", "#!/usr/bin/make -f\nall:\n\ttrue\n", 0o755)
        self.assert_clean()

    def test_trailing_blanks(self):
        self.write("docs/a.md", "text \n")
        self.assert_complaint("docs/a.md:1: blanks at the end")

    def test_an_unfinished_mark(self):
        self.write("docs/a.md", f"{MARK}: write this\n")
        self.assert_complaint("docs/a.md:1: an unfinished mark")

    def test_a_word_that_contains_a_mark_passes(self):
        self.write("docs/a.md", f"{MARK}S and XX" + "XX\n")
        self.assert_clean()

    def test_no_newline_at_the_end(self):
        self.write("docs/a.md", "one\ntwo")
        self.assert_complaint("docs/a.md:2: no newline")

    def test_a_path_of_the_tree_itself(self):
        self.write("docs/a.md", f"see {self.root}/docs\n")
        self.assert_complaint("docs/a.md:1: a path of one machine")

    def test_somebodys_home(self):
        self.write("docs/a.md", "see /home/" + "jane/notes\n")
        self.assert_complaint("docs/a.md:1: a path of one machine")

    def test_recorded_data_is_not_checked(self):
        self.write("tests/data/a.csv", "a,b \nc")
        self.assert_clean()

    def test_a_build_folder_is_not_checked(self):
        self.write("build/release/a.cpp", "\t\n")
        self.assert_clean()


class Sizes(TidyTest):
    def test_a_file_of_600_lines_passes(self):
        self.write("base/a.cpp", "//\n" * 600)
        self.assert_clean()

    def test_a_file_of_601_lines_fails(self):
        self.write("base/a.cpp", "//\n" * 601)
        self.assert_complaint("601 lines")

    def test_a_function_of_70_lines_passes(self):
        self.write("base/a.cpp", "void f() {\n" + "  g();\n" * 68 + "}\n")
        self.assert_clean()

    def test_a_function_of_71_lines_fails(self):
        self.write("base/a.cpp", "int a;\n\nvoid f() {\n" + "  g();\n" * 69 + "}\n")
        self.assert_complaint("base/a.cpp:3: a function of 71 lines")


class Functions(unittest.TestCase):
    def check(self, source, expected):
        self.assertEqual(cpp_text.functions(source), expected)

    def test_inside_namespaces_and_classes(self):
        self.check("namespace a {\nclass B : public C<int> {\n  int f() const {\n    return 1;\n"
                   "  }\n};\n}\n", [(3, 3)])

    def test_a_signature_over_two_lines_counts_both(self):
        self.check("int f(int a,\n      int b) {\n  return a;\n}\n", [(1, 4)])

    def test_a_constructor_with_braced_members_is_one_function(self):
        self.check("A::A(int b)\n    : a_{b}, c_{2} {\n  f();\n}\n", [(1, 4)])

    def test_a_test_case_is_a_function(self):
        self.check('TEST_CASE("a fact {") {\n  CHECK(true);\n}\n', [(1, 3)])

    def test_braces_in_text_do_not_count(self):
        self.check("void f() {\n  g('{', \"}\", R\"x(\n}\n)x\");  // }\n}\nint a;\n", [(1, 5)])

    def test_lambdas_belong_to_their_function(self):
        self.check("void f() {\n  g([] {\n    h();\n  });\n}\n", [(1, 5)])

    def test_tables_are_no_functions(self):
        self.check("constexpr int kTable[] = {\n  1,\n};\nenum class E {\n  a,\n};\n", [])

    def test_a_function_that_returns_a_struct(self):
        self.check("struct stat f(int a) {\n  return g(a);\n}\n", [(1, 3)])


class Headers(TidyTest):
    def test_pragma_once_after_a_comment_passes(self):
        self.write("base/a.h", "// What it is.\n#pragma once\n")
        self.assert_clean()

    def test_a_header_without_pragma_once(self):
        self.write("base/a.h", "int a();\n")
        self.assert_complaint("base/a.h:1: the first line of code is not #pragma once")

    def test_using_namespace_in_a_header(self):
        self.write("base/a.h", "#pragma once\nusing namespace std;\n")
        self.assert_complaint("base/a.h:2: using namespace")

    def test_a_header_that_does_not_compile_alone(self):
        self.write("base/a.h", "#pragma once\nstd::string a();\n")
        self.write("base/b.cpp", "#include <string>\n\n#include \"base/a.h\"\n")
        self.assert_complaint("base/a.h:1: does not compile alone", self.build("base/b.cpp"))

    def test_a_header_that_compiles_alone(self):
        self.write("base/a.h", "#pragma once\n#include <string>\nstd::string a();\n")
        self.write("base/b.cpp", "int b;\n")
        self.assert_clean(self.build("base/b.cpp"))

    def test_a_bpf_program_proves_the_header_that_it_includes_first(self):
        self.write("collectors/ebpf/a.bpf.h", "#pragma once\nno C++\n")
        self.write("collectors/ebpf/b.cpp", "int b;\n")
        build = self.build("collectors/ebpf/b.cpp")
        self.assert_complaint("collectors/ebpf/a.bpf.h:1: does not compile alone", build)
        self.write("collectors/ebpf/a.bpf.c", '#include "collectors/ebpf/a.bpf.h"\n')
        self.assert_clean(build)

    def test_a_header_of_the_tests_need_not_compile_alone(self):
        self.write("tests/a.h", "#pragma once\nstd::string a();\n")
        self.write("base/b.cpp", "int b;\n")
        self.assert_clean(self.build("base/b.cpp"))

    def test_a_joined_source_proves_the_header_that_it_includes_first(self):
        self.write("base/a.h", "#pragma once\nstd::string a();\n")
        self.write("base/a.cpp", '#include "base/a.h"\n')
        self.write("base/b.cpp", "int b;\n")
        unity = "build/x.dir/Unity/unity_0_cxx.cxx"
        self.write(unity, "".join(f'#include "{self.root}/base/{name}.cpp"\n' for name in "ba"))
        self.assert_clean(self.build(unity))

    def test_precompiled_headers_prove_nothing(self):
        self.write("base/a.h", "#pragma once\nstd::string a();\n")
        self.write("base/b.cpp", "int b;\n")
        self.write("build/precompiled.h", "#include <string>\n")
        self.assert_complaint(
            "base/a.h:1: does not compile alone",
            self.build("base/b.cpp", flags=f"-include {self.root}/build/precompiled.h"))


class Includes(TidyTest):
    def test_the_rows_of_the_table_pass(self):
        self.write("base/a.cpp", "#include <sys/stat.h>\n\n#include <vector>\n")
        self.write("model/a.cpp", '#include <Eigen/Core>\n\n#include "base/a.h"\n'
                   '#include "collectors/sample.h"\n')
        self.write("core/a.cpp", '#include "model/crbm.h"\n#include "policy/policy.h"\n')
        self.write("agent/a.cpp", '#include <boost/asio/io_context.hpp>\n'
                   '#include "control/writer/a.h"\n#include "core/a.h"\n')
        self.write("cli/commands/a.cpp", '#include <CLI/CLI.hpp>\n#include "cli/a.h"\n'
                   '#include "model/train/trainer.h"\n#include "protocol/protocol.h"\n')
        self.write("tests/model/a.cpp", '#include <doctest/doctest.h>\n#include "model/crbm.h"\n')
        self.assert_clean()

    def test_base_includes_no_other_folder(self):
        self.write("base/a.cpp", '#include "collectors/sample.h"\n')
        self.assert_complaint('base/ may not include "collectors/sample.h"')

    def test_the_vocabulary_is_for_the_folders_above_it(self):
        self.write("model/a.cpp", '#include "collectors/sample.h"\n')
        self.assert_clean()
        self.write("model/a.cpp", '#include "policy/decision.h"\n')
        self.assert_complaint('model/ may not include "policy/decision.h"')

    def test_model_includes_only_the_vocabulary_of_collectors(self):
        self.write("model/a.cpp", '#include "collectors/node_sampler.h"\n')
        self.assert_complaint('model/ may not include "collectors/node_sampler.h"')

    def test_the_core_does_not_reach_storage(self):
        self.write("core/a.cpp", '#include "storage/store.h"\n')
        self.assert_complaint('core/ may not include "storage/store.h"')

    def test_the_daemon_does_not_train_and_not_compare(self):
        for header in ("model/train/trainer.h", "lab/replay/replay.h", "cli/options.h"):
            with self.subTest(header):
                self.write("agent/a.cpp", f'#include "{header}"\n')
                self.assert_complaint(f'agent/ may not include "{header}"')

    def test_the_command_does_not_reach_the_sockets_of_the_daemon(self):
        self.write("cli/a.cpp", '#include "agent/server/socket_server.h"\n')
        self.assert_complaint('cli/ may not include "agent/server/socket_server.h"')

    def test_programs_do_not_include_tests(self):
        self.write("control/a.cpp", '#include "tests/fixture.h"\n')
        self.assert_complaint('control/ may not include "tests/fixture.h"')

    def test_every_folder_of_a_row_has_a_row(self):
        for folder, row in include_table.FOLDERS.items():
            for other in row.split():
                self.assertIn(other, include_table.FOLDERS, folder)

    def test_folders_include_downwards_only(self):
        order = list(include_table.FOLDERS)
        for folder, row in include_table.FOLDERS.items():
            for other in row.split():
                kin = folder.startswith(other + "/") or other.startswith(folder + "/")
                self.assertTrue(kin or order.index(other) < order.index(folder),
                                f"{folder} -> {other}")

    def test_an_include_beside_the_file(self):
        self.write("base/a.cpp", '#include "a.h"\n')
        self.assert_complaint('"a.h" is not written from the root')

    def test_an_outside_library_has_one_owner(self):
        for header, owner in [("Eigen/Core", "model"),
                              ("sqlite3.h", "collectors/containers, storage"),
                              ("libcgroup.h", "cgroupfs"), ("CLI/CLI.hpp", "cli, lab"),
                              ("boost/asio/post.hpp", "agent"), ("toml++/toml.h", "agent"),
                              ("doctest/doctest.h", "tests"), ("zlib.h", "traces")]:
            with self.subTest(header):
                self.write("policy/a.cpp", f"#include <{header}>\n")
                self.assert_complaint(f"<{header}> belongs to {owner}")

    def test_an_unknown_library(self):
        self.write("agent/a.cpp", "#include <curl/curl.h>\n")
        self.assert_complaint("<curl/curl.h> belongs to no folder")

    def test_a_folder_outside_the_table(self):
        self.write("extra/a.cpp", "int a;\n")
        self.assert_complaint("extra/a.cpp:1: is in no folder")


class Files(TidyTest):
    def test_a_source_file_that_nothing_builds(self):
        self.write("base/a.cpp", "int a;\n")
        self.write("tests/base/a_test.cpp", "int b;\n")
        self.assert_complaint("tests/base/a_test.cpp:1: no CMakeLists.txt builds it",
                              self.build("base/a.cpp"))

    def test_a_reload_of_systemd(self):
        for text in ("systemctl --system daemon-reload", "systemctl daemon-reexec",
                     "systemctl enable --now cgphased", "deb-x; systemctl -q mask cgphased",
                     "deb-systemd-helper enable cgphased.service",
                     "busctl call org.freedesktop.systemd1.Manager Reload",
                     "echo x >/etc/systemd/system/docker-1.scope.d/limits.conf"):
            self.write("packaging/postinst", "# Done.\n" + text + "\n")
            self.assert_complaint("packaging/postinst:2: makes systemd reload: ")
        self.write("packaging/postinst", "true\n")
        for text in ('call("Reload");', 'open("/run/systemd/system/x.scope.d/y.conf");'):
            self.write("control/a.cpp", text + "\n")
            self.assert_complaint("control/a.cpp:1: makes systemd reload: ")

    def test_lines_that_reload_nothing(self):
        self.write("packaging/postinst",
                   "# never daemon-reload\nsystemctl start cgphased  # no daemon-reload\n"
                   "systemctl --no-reload enable cgphased.service\n"
                   "rm -f /etc/systemd/system/*.wants/cgphased.service\n")
        self.write("control/a.cpp", "// after a daemon-reload\nint reload();\n"
                                    'f("/run/systemd/transient/");\n')
        self.write("systemd/x.service", "[Service]\nExecReload=/bin/kill -HUP $MAINPID\n")
        self.write("packaging/README.md", "`systemctl daemon-reload` resets limits.\n")
        for path in ("tests/engines/x.sh", "packaging/deb/tests/x"):
            self.write(path, "#!/bin/sh\nsystemctl daemon-reload\n", 0o755)
        self.assert_clean()

    def test_a_name_in_camel_case(self):
        self.write("base/BigName.cpp", "int a;\n")
        self.assert_complaint("file names are snake_case")

    def test_local_names_that_clash_in_joined_files(self):
        self.write("base/CMakeLists.txt", "cgphase_library(cgphase_base\n  a.cpp b.cpp)\n")
        head = "namespace cgphase {\nnamespace {\n"
        for one, other in (("int f(int x) {\n}", "void f(int) {\n}"),
                           ("struct S {\n  int a;\n};", "enum class S : int { a };"),
                           ("constexpr int kOne = 1;", "const char* kOne{};"),
                           ("using T = int;", "using T = long;")):
            self.write("base/a.cpp", head + one + "\n}\n}\n")
            self.write("base/b.cpp", head + other + "\n}\n}\n")
            self.assert_complaint("is a name of base/a.cpp, too")
            self.write("base/CMakeLists.txt", "cgphase_library(cgphase_base a.cpp b.cpp)\n"
                       "set_source_files_properties(b.cpp PROPERTIES "
                       "SKIP_UNITY_BUILD_INCLUSION ON)\n")
            self.assert_clean()
            self.write("base/CMakeLists.txt", "cgphase_library(cgphase_base\n  a.cpp b.cpp)\n")

    def test_a_local_name_that_is_public_in_a_header_of_another_file(self):
        self.write("base/CMakeLists.txt", "cgphase_library(cgphase_base a.cpp b.cpp)\n")
        self.write("base/c.h", "#pragma once\n\nnamespace cgphase {\nstruct Form {};\n}\n")
        self.write("base/b.h", '#pragma once\n#include "base/c.h"\n')
        self.write("base/a.cpp", "namespace cgphase {\nnamespace {\nenum class Form { a };\n}\n}\n")
        self.write("base/b.cpp", '#include "base/b.h"\n')
        self.assert_complaint("base/a.cpp:3: Form is a name of base/c.h, too")

    def test_local_names_that_do_not_clash(self):
        self.write("base/CMakeLists.txt", "cgphase_library(cgphase_base a.cpp b.cpp)\n"
                                          "cgphase_program(other c.cpp)\n")
        head = "namespace cgphase {\nnamespace {\nusing nlohmann::json;\n"
        for name, what in (("a", "int f(int x) {\n  struct S {};\n}"),
                           ("b", "int f(const char* x = 0) {\n  struct S {};\n}"),
                           ("c", "int f(int x) {\n}\nstruct S {};")):
            self.write(f"base/{name}.cpp", head + what + "\n}\n}\n")
        self.write("base/d.h", "#pragma once\n\nnamespace cgphase {\nstruct S {};\n}\n")
        self.assert_clean()

    def test_a_script_that_is_not_executable(self):
        self.write("scripts/a", "#!/bin/sh\necho a\n")
        self.assert_complaint("a script that is not executable")

    def test_an_executable_that_is_not_a_script(self):
        self.write("docs/a.md", "text\n", 0o755)
        self.assert_complaint("executable, but not a script")

    @unittest.skipUnless(tidy.shutil.which("shellcheck"), "shellcheck is not installed")
    def test_a_warning_of_shellcheck(self):
        self.write("scripts/a", "#!/bin/sh\nunused=1\n", 0o755)
        self.assert_complaint("scripts/a:2: ")

    def test_a_good_script(self):
        self.write("scripts/a", "#!/bin/sh\necho a\n", 0o755)
        self.assert_clean()


if __name__ == "__main__":
    unittest.main()
