"""Each rule of tools/tidy.py finds its own offence in a small tree, and a clean tree has none."""
import importlib.util
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("tidy", ROOT / "tools" / "tidy.py")
tidy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tidy)

CLEAN = {
    "src/CMakeLists.txt": "# Modules.\ncairn_module(base)\n",
    "TOUR.md": "See `src/base/thing.h`.\n",
    "src/base/thing.h": "// A thing.\n#pragma once\n\nnamespace cairn {\n"
                        "int thing(int count);\n}\n",
    "src/base/thing.cpp": '// A thing.\n#include "base/thing.h"\n\nnamespace cairn {\nnamespace {\n'
                          "constexpr int kLimit = 3;\nconst int table[] = {1, 2};\n}\n"
                          "int thing(int count) {\n  int sum = 0;\n  sum += count;\n"
                          "  return sum + table[0] + kLimit;\n}\n}\n",
    "tests/base/thing_test.cpp": "// Of the thing.\n",
}


def problems_of(changes, covered_by=()):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            if text is not None:
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        checker = tidy.Tidy(pathlib.Path(folder))
        for name in checker.files:
            checker.check_file(name)
        checker.check_names()
        checker.check_types()
        checker.check_modules()
        checker.check_tests(covered_by)
        checker.check_folders()
        checker.check_tour()
        return checker.problems


class TidyTest(unittest.TestCase):
    def expect(self, changes, *messages, covered_by=()):
        found = problems_of(changes, covered_by)
        for message in messages:
            self.assertTrue(any(message in problem for problem in found), (message, found))
        self.assertEqual(len(found), len(messages), found)

    def with_body(self, body):
        head = "// A thing.\n#include <vector>\nnamespace cairn {\n"
        return {"src/base/thing.cpp": head + body + "}\n"}

    def test_own_namespaces(self):
        test = "// Of the thing.\nnamespace cairn::%s {\nTEST(Thing, IsThere) {}\n}\n"
        self.expect({"tests/base/thing_test.cpp": test % "thing_test"})
        self.expect({"tests/base/thing_test.cpp": test % "thing"},
                    "tests/base/thing_test.cpp:1: expected a namespace thing_test, found none")

    def test_names_without_their_headers(self):
        self.expect(self.with_body("int f() {\n  return std::min(1, 2);\n}\n"),
                    "src/base/thing.cpp:5: std::min: include algorithm")
        include = "// A thing.\n#pragma once\n#include <string>\n"
        uses = '// A thing.\n#include "base/thing.h"\nnamespace cairn {\nbool f(%s s) {\n}\n}\n'
        self.expect({"src/base/thing.h": include,
                     "src/base/thing.cpp": uses % "std::string_view"})
        self.expect({"src/base/thing.h": include,
                     "src/base/thing.cpp": uses % "std::span<int>"},
                    "src/base/thing.cpp:4: std::span: include span")

    def test_types_without_their_headers(self):
        part = "// A part.\n#pragma once\n\nnamespace cairn {\nstruct Part {\n  int a = 0;\n};\n}\n"
        uses = "// A thing.\n%s\nnamespace cairn {\nint f(%s part) {\n  return 0;\n}\n}\n"
        header = '#include "base/part.h"\n'
        between = '// Between.\n#pragma once\n\n#include "base/part.h"\n'
        self.expect({"src/base/part.h": part, "src/base/thing.cpp": uses % ("", "const Part&")},
                    "src/base/thing.cpp:4: Part: include base/part.h")
        self.expect({"src/base/part.h": part, "src/base/thing.cpp": uses % (header, "Part")})
        self.expect({"src/base/part.h": part, "src/base/thing.h": between,
                     "src/base/thing.cpp": uses % ('#include "base/thing.h"\n', "Part")})
        self.expect({"src/base/part.h": part,
                     "src/base/thing.cpp": uses % ("struct Part;\n", "Part&")})
        own = "namespace cairn {\nclass Part {\n};\n}\n"
        self.expect({"src/base/part.h": part, "src/base/thing.cpp": uses % (own, "Part")})

    def test_instructions(self):
        front = "thing.cpp.o:     file format elf64-x86-64\n\n0 <f>:\n"
        old = "   0:\tpopcnt %rdi,%rax\n   5:\tverr   %ax\n   8:\ttzcnt  %edi,%eax\n   c:\tret\n"
        self.assertEqual(tidy.new_instructions(front + old), set())
        new = "   0:\tvpaddd %ymm0,%ymm1,%ymm0\n   4:\t{vex} vpdpbusd %ymm1,%ymm9,%ymm0\n" \
              "   9:\ttilezero %tmm2\n   e:\tkmovd  %eax,%k1\n  12:\tshlx   %eax,%edi,%eax\n"
        self.assertEqual(tidy.new_instructions(front + old + new),
                         {"vpaddd", "{vex} vpdpbusd", "tilezero", "kmovd", "shlx"})
        self.assertEqual(tidy.new_instructions(front.replace("x86-64", "aarch64") + new), set())

    def test_clean(self):
        self.expect({})

    def test_table_of_modules(self):
        table = "# Modules.\ncairn_module(base)\ncairn_module(gguf base)\n"
        self.expect({"src/CMakeLists.txt": table}, "gguf/ does not use base/")
        self.expect({"src/CMakeLists.txt": table.replace("(base)", "(base gguf)"),
                     "src/base/thing.cpp": '// A thing.\n#include "gguf/a.h"\n',
                     "src/gguf/a.h": '// Uses it.\n#pragma once\n#include "base/thing.h"\n'},
                    "base/ uses gguf/, which comes after it")

    def test_layers(self):
        self.expect(self.with_body('#include "quant/quant.h"\n'), "base/ may not use quant/")
        self.expect(self.with_body('#include "thing.h"\n'), "an include names its module")

    def test_sizes(self):
        self.expect(self.with_body("// x\n" * 800), "a file has at most 800")
        self.expect(self.with_body("// " + "x" * 100 + "\n"), "103 columns")
        long = "int f() {\n" + "  g();\n" * 69 + "}\n"
        self.expect(self.with_body(long), "f() has 71 lines")
        self.expect(self.with_body(long.replace("  g();\n", "", 1)))
        header = CLEAN["src/base/thing.h"] + "// x\n" * 200
        self.expect({"src/base/thing.h": header}, "a header has at most 200")

    def test_folders(self):
        row = {f"src/base/part{i}.h": "// A part.\n#pragma once\n" for i in range(43)}
        self.expect(row)
        self.expect({**row, "src/base/part.h": "// A part.\n#pragma once\n"},
                    "src/base:1: 46 sources; a folder has at most 45")
        row = {name.replace("base/", "base/deep/"): text for name, text in row.items()}
        self.expect({**row, "src/base/part.h": "// A part.\n#pragma once\n"})

    def test_function_inside_class(self):
        body = "class A {\n  int f() {\n" + "    g({1, 2});\n" * 70 + "  }\n};\n"
        self.expect(self.with_body(body), "f() has 72 lines")

    def test_names(self):
        for word in ("cur", "tmp", "il", "inp", "n_tokens"):
            self.expect(self.with_body(f"int f(int {word});\n"), f"'{word}': use")
        self.expect(self.with_body('const char* const name = "n_tokens tmp";  // cur\n'))

    def test_habits(self):
        self.expect(self.with_body('auto f() { return std::getenv("X"); }\n'), "getenv")
        self.expect(self.with_body("void f() { throw 1; }\n"), "'throw'")
        header = "// A thing.\n#pragma once\nusing namespace std;\n"
        self.expect({"src/base/thing.h": header}, "'using namespace'")
        self.expect({"src/base/thing.h": "// A thing.\n"}, "no #pragma once")
        self.expect(self.with_body("// TO" "DO: more\n"), "does not belong")
        self.expect({"src/base/thing.cpp": "namespace cairn {}\n"}, "no comment at the top")
        self.expect({"src/base/thing.cpp": "// x\n" * 9}, "9 lines of comment")

    def test_globals(self):
        for variable in ("int counter = 0;", "static int counter;", "std::vector<int> list;",
                         "std::atomic<int> counter{0};", "int* place = nullptr;"):
            self.expect(self.with_body(variable + "\n"), "a global variable that changes")
        self.expect(self.with_body("int f() {\n  static int calls = 0;\n  return ++calls;\n}\n"),
                    "a static variable that changes")
        for fine in ("const int limit = 3;", "constexpr A a{1};", "int f(int x);", "struct A;",
                     "struct A {\n  int x = 0;\n};", "enum class B { one, two };"):
            self.expect(self.with_body(fine + "\n"))

    def test_company(self):
        self.expect({"tests/base/thing_test.cpp": None}, "expected tests/base/thing_test.cpp")
        covered = [("src/base/{thing,part}.cpp", "tests/base/whole_test.cpp", "one entrance")]
        untested = {"tests/base/thing_test.cpp": None, "tests/base/whole_test.cpp": "// Of all.\n",
                    "src/base/part.cpp": "// A part.\n"}
        self.expect(untested, covered_by=covered)
        self.expect({**untested, "tests/base/whole_test.cpp": None},
                    "src/base/part.cpp:1: expected tests/base/whole_test.cpp",
                    "src/base/thing.cpp:1: expected tests/base/whole_test.cpp", covered_by=covered)
        # A line for what has a test of its own, or is not there, is for nothing.
        self.expect({**untested, "tests/base/thing_test.cpp": "// Of the thing.\n"},
                    "src/base/thing.cpp matches no source", covered_by=covered)
        self.expect({**untested, "src/base/part.cpp": None},
                    "src/base/part.cpp matches no source", covered_by=covered)
        # A star does not reach into folders.
        self.expect({"src/base/deep/part.cpp": "// A part.\n"},
                    "expected tests/base/part_test.cpp", "src/base/*.cpp matches no source",
                    covered_by=[("src/base/*.cpp", "tests/base/thing_test.cpp", "all")])
        self.expect({"TOUR.md": "See `base/other.h`.\n"}, "base/other.h does not exist")
        self.expect({"TOUR.md": None}, "there is none")


if __name__ == "__main__":
    unittest.main()
