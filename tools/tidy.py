#!/usr/bin/env python3
"""Checks the rules of STYLE.md over the tree: a line for each problem, exit code 1 if there is any.

  tools/tidy.py [--root DIR] [--objects BUILD_DIR]

--objects also looks at the symbols of the objects compiled for one instruction set, and at the
instructions of all others; they must come from a release build.
"""
import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys

# The table of modules: who may use whom.
MODULES = "src/CMakeLists.txt"

# Files of src/ without a test file of their own name: which tests cover them, and why so.
COVERED_BY = [
    ("src/backends/*_avx2.cpp", "tests/backends/*_test.cpp", "half of a file"),
    ("src/backends/*_avx512.cpp", "tests/backends/*_test.cpp", "likewise"),
    ("src/backends/*_avxvnni.cpp", "tests/backends/*_test.cpp", "likewise"),
    ("src/backends/*_amx.cpp", "tests/backends/*_test.cpp", "likewise"),
    ("src/backends/*_neon.cpp", "tests/backends/*_test.cpp", "likewise"),
    ("src/backends/*.cpp", "tests/backends/*_test.cpp", "op by op against the reference"),
    ("src/quant/*.cpp", "tests/quant/all_types_test.cpp", "walks the table of formats"),
    ("src/models/*.cpp", "tests/models/golden_test.cpp", "walks the table of architectures"),
    ("src/sample/*.cpp", "tests/sample/sampler_test.cpp", "stages are tested in the chain"),
    ("src/grammar/*.cpp", "tests/grammar/*_test.cpp", "notations through what fits them"),
    ("src/graph/blocks/*.cpp", "tests/models/golden_test.cpp", "blocks are seen in whole models"),
    ("src/graph/*.cpp", "tests/graph/graph_test.cpp", "one builder in several files"),
    ("src/memory/*.cpp", "tests/memory/memory_test.cpp", "one entrance, tested as a whole"),
    ("src/engine/*.cpp", "tests/engine/*_test.cpp", "tested through the engine"),
    ("src/gguf/*.cpp", "tests/gguf/gguf_test.cpp", "one reader in several files"),
    ("src/convert/*.cpp", "tests/convert/*_test.cpp", "parsers alone, the rest by whole models"),
    ("src/device/*.cpp", "tests/device/*_test.cpp", "walking a plan"),
    ("src/jinja/*.cpp", "tests/jinja/*_test.cpp", "one interpreter, tested by goldens"),
    ("src/chat/*.cpp", "tests/chat/*_test.cpp", "tested through the parser and the templates"),
    ("src/tokenize/*.cpp", "tests/tokenize/*_test.cpp", "tokenizers are tested by goldens"),
    ("src/session/*.cpp", "tests/session/*_test.cpp", "through whole answers"),
    ("src/synth/*.cpp", "tests/synth/synth_test.cpp", "seen in whole models"),
    ("src/quantize/*.cpp", "tests/quantize/quantize_test.cpp", "seen in whole models"),
    ("src/measure/memory_*.cpp", "tests/cli/memory_commands_test.cpp", "through the program"),
    ("src/measure/*.cpp", "tests/measure/*_test.cpp", "figures of one another"),
    ("src/cli/*.cpp", "tests/cli/*_test.cpp", "the program is tested from outside"),
]

# Function-local statics that change. Each is the only way; the file says why.
MUTABLE_STATICS = {"src/base/mapped_file.cpp": "what a signal handler reads",
                   "src/base/log.cpp": "one stderr, one logger",
                   "src/cli/terminal/interrupt.cpp": "what a signal handler sets"}

# Functions with newer instructions than x86-64-v2 in files for everyone, and who calls them.
CHOOSE_THEMSELVES = {"machine_limits.cpp": "loops of one instruction set, called where it is"}

BANNED = [(r"\bn_\w+", "…_count"), (r"\bcur\b", "a name of what it is"),
          (r"\btmp\b", "a name of what it is"), (r"\bil\b", "layer"), (r"\binp\b", "input"),
          (r"\bthrow\b", "a Result (base/result.h)")]
FILE_LINES, HEADER_LINES, FUNCTION_LINES, COLUMNS, TOP_COMMENT_LINES = 800, 200, 70, 100, 8
CODE = {".h", ".cpp", ".py", ".cmake", ".sh"}
# Written in pieces, so that this file passes its own check.
FORBIDDEN_TEXT = ["/wo" "rk/", "/fa" "rm/", "FIX" "ME", "TO" "DO"]


def without_comments(text):
    """The same text with comments and the insides of literals blanked, line breaks kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", re.S)

    def blank(match):
        found = match[0]
        ends = ("", "") if found.startswith("/") else ('"', '"')
        inside = found[len(ends[0]):len(found) - len(ends[1])]
        return ends[0] + re.sub(r"[^\n]", " ", inside) + ends[1]
    return pattern.sub(blank, text)


def is_function(head):
    """Whether the text before a brace opens a function's body."""
    head = re.sub(r"\s+", " ", head).strip()
    head = re.sub(r"^(public|private|protected) ?:", "", head)
    head = re.sub(r"\[\[.*?\]\]|alignas\(.*?\)", "", head)
    return "(" in head and not re.search(r"(=|,|\(|\breturn)$", head)


def is_scope(head):
    opens = re.search(r"\b(namespace|class|struct|union|enum|extern \"\s*\")", head)
    return opens and not re.search(r"\)\s*(const|noexcept|override|->.*|:.*)*\s*$", head)


def walk_scopes(code):
    """Yields ('function', line, lines, head) and ('statement', line, text) at namespace scope."""
    stack, head, line, head_line = [], "", 1, 1
    directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
    code = directive.sub(lambda found: re.sub(r"[^\n]", "", found[0]), code)
    for token in re.findall(r"[{};]|\n|[^{};\n]+", code):
        if token == "\n":
            line += 1
            head += " "
            continue
        in_body = any(kind == "function" for kind, *_ in stack)
        if token == "{":
            if in_body:
                stack.append(("block", line, ""))
            elif is_scope(head):
                kind = "namespace" if re.search(r"\bnamespace\b", head) else "type"
                stack.append((kind, line, ""))
                head = ""
            elif is_function(head):
                stack.append(("function", head_line, head))
                head = ""
            else:
                stack.append(("value", line, head))
        elif token == "}":
            kind, start, kept = stack.pop() if stack else ("block", line, "")
            if kind == "function":
                yield "function", start, line - start + 1, kept
            head = kept + "{}" if kind == "value" else ("}" if kind == "type" else "")
        elif token == ";":
            if all(kind == "namespace" for kind, *_ in stack):
                yield "statement", head_line, re.sub(r"\s+", " ", head).strip()
            head = ""
        else:
            if not head.strip():
                head, head_line = "", line
            if not in_body:
                head += token


def is_mutable_variable(statement):
    if not statement or statement.startswith("}"):
        return False
    if re.match(r"(using|typedef|template|friend|static_assert|extern|class|struct|enum|union|"
                r"namespace)\b", statement):
        return False
    before = re.split(r"=|\{", statement)[0]
    if "(" in before or re.search(r"\b(const|constexpr|operator)\b", before):
        return False
    return bool(re.match(r"(?:(?:static|thread_local|inline|constinit)\s+)*[\w:<>,&* ]+[\s*&]\w+"
                         r"(\[[^\]]*\])*$", before.strip()))


def new_instructions(disassembly):
    """Instructions that came after x86-64-v2: AVX and later, masks, tiles, BMI. GNU as writes BSF
    with a prefix as TZCNT; older processors take it as the former, so it is none of them."""
    if "elf64-x86-64" not in disassembly:
        return set()
    pattern = re.compile(r"\t((?:\{vex\} )?v[a-z]\w+|k(?:mov|and|or|xor|not|test|shift|add)\w+"
                         r"|tile\w+|ldtilecfg|tdp\w+|sarx|shlx|shrx|rorx|mulx|andn|pdep|pext"
                         r"|bextr|blsi|blsr|blsmsk|lzcnt|bzhi|movbe)\b")
    return set(pattern.findall(disassembly)) - {"verr", "verw"}


def modules_of(text):
    """What each module may use, in the order of the table: the lines of src/CMakeLists.txt."""
    lines = re.findall(r"^cairn_module\((\w+)([^)]*)\)", text, re.M)
    return {name: below.split() for name, below in lines}


class Tidy:
    def __init__(self, root):
        self.root, self.problems, self.used = root, [], set()
        table = root / MODULES
        self.may_use = modules_of(table.read_text()) if table.is_file() else {}
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root,
                                capture_output=True, text=True)
        names = listed.stdout.split("\n") if listed.returncode == 0 else [
            str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        self.files = sorted(n for n in names if n and (root / n).is_file())

    def report(self, name, line, message):
        self.problems.append(f"{name}:{line}: {message}")

    def check_file(self, name):
        suffix = pathlib.PurePath(name).suffix
        if suffix not in CODE | {".md", ".txt", ".json", ""}:
            return
        try:
            text = (self.root / name).read_text()
        except UnicodeDecodeError:
            return  # A fuzzer's seed or another binary file.
        lines = text.split("\n")
        if not name.startswith(("tests/fixtures/", "fuzz/corpus/", "assets/")):
            for number, line in enumerate(lines, 1):
                for word in FORBIDDEN_TEXT:
                    if re.search(r"(?<!\w)" + re.escape(word), line):
                        self.report(name, number, f"'{word}' does not belong in the repository")
        if suffix in CODE or name == "dev" or name.endswith("CMakeLists.txt"):
            self.check_shape(name, lines)
        if suffix in (".h", ".cpp"):
            self.check_cpp(name, text)

    def check_shape(self, name, lines):
        if len(lines) - 1 > FILE_LINES:
            self.report(name, 1, f"{len(lines) - 1} lines; a file has at most {FILE_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                self.report(name, number, f"{len(line)} columns; at most {COLUMNS}")
        first = 1 if lines[0].startswith("#!") else 0
        if not re.match(r'//|#|"""', lines[first] if len(lines) > first else ""):
            self.report(name, 1, "no comment at the top that says what the file owns")

    def check_cpp(self, name, text):
        code = without_comments(text)
        top = re.match(r"(?://[^\n]*\n)*", text)[0].count("\n")
        if top > TOP_COMMENT_LINES:
            self.report(name, 1, f"{top} lines of comment at the top; at most {TOP_COMMENT_LINES}")
        if name.endswith(".h"):
            lines = text.count("\n")
            # In backends/cpu/ a header is the text of a kernel, compiled once for each machine.
            if lines > HEADER_LINES and re.match(r"src/(?!backends/cpu/)", name):
                self.report(name, 1, f"{lines} lines; a header has at most {HEADER_LINES}")
            if "#pragma once" not in text:
                self.report(name, 1, "no #pragma once")
        for number, line in enumerate(code.split("\n"), 1):
            for pattern, instead in BANNED:
                for found in re.findall(pattern, line):
                    self.report(name, number, f"'{found}': use {instead}")
            if "getenv" in line and name != "src/base/env.cpp":
                self.report(name, number, "getenv: use base/env.h")
            if name.endswith(".h") and re.search(r"\busing\s+namespace\b", line):
                self.report(name, number, "'using namespace' in a header")
            if (name.startswith("src/") and name not in MUTABLE_STATICS and
                    re.match(r"\s+(static|thread_local)\s+(?!.*\bconst(expr)?\b)[^(]*[=;]", line)):
                self.report(name, number, "a static variable that changes")
        self.check_includes(name, text)
        self.check_scopes(name, code)

    def check_includes(self, name, text):
        parts = name.split("/")
        if parts[0] != "src" or len(parts) < 3:
            return
        allowed = {parts[1], *self.may_use.get(parts[1], [])}
        if parts[1] not in self.may_use:
            self.report(name, 1, f"module {parts[1]}/ is not in the table of {MODULES}")
        for number, line in enumerate(text.split("\n"), 1):
            hit = re.match(r'\s*#include "(\w+)/', line)
            if hit:
                self.used.add((parts[1], hit[1]))
            if hit and hit[1] not in allowed:
                self.report(name, number, f"{parts[1]}/ may not use {hit[1]}/")
            elif re.match(r'\s*#include "[^/"]+"', line):
                self.report(name, number, "an include names its module: \"module/file.h\"")

    def check_modules(self):
        """The table goes upwards, and each of its permissions is made use of."""
        below = set()
        for module, allowed in self.may_use.items():
            for other in allowed:
                if other not in below:
                    self.report(MODULES, 1, f"{module}/ uses {other}/, which comes after it")
                elif (module, other) not in self.used:
                    self.report(MODULES, 1, f"{module}/ does not use {other}/")
            below.add(module)

    def check_scopes(self, name, code):
        for what, line, *rest in walk_scopes(code):
            if what == "function" and rest[0] > FUNCTION_LINES:
                head = re.search(r"([\w:~]+)\s*\(", rest[1])
                self.report(name, line, f"{head[1] if head else 'a function'}() has {rest[0]} "
                                        f"lines; at most {FUNCTION_LINES}")
            if what == "statement" and name.startswith("src/") and is_mutable_variable(rest[0]):
                self.report(name, line, f"a global variable that changes: {rest[0][:60]}")

    def check_tests(self):
        tests = [n for n in self.files if n.startswith("tests/")]
        for name in self.files:
            parts = pathlib.PurePath(name).parts
            if parts[0] != "src" or not name.endswith(".cpp"):
                continue
            stem, module = pathlib.PurePath(name).stem, parts[1]
            wanted = f"{stem}_test.cpp"
            pattern = re.compile(r"(\w+_)?" + re.escape(wanted))
            if any(t.startswith(f"tests/{module}/") and pattern.fullmatch(t.rsplit("/", 1)[1])
                   for t in tests):
                continue
            cover = next((c for c in COVERED_BY if fnmatch.fnmatch(name, c[0])), None)
            if cover is None:
                self.report(name, 1, f"expected tests/{module}/{wanted}, found none")
            elif not fnmatch.filter(tests, cover[1]):
                self.report(name, 1, f"expected {cover[1]} ({cover[2]}), found none")

    def check_tour(self):
        if "TOUR.md" not in self.files:
            self.report("TOUR.md", 1, "there is none")
            return
        text = (self.root / "TOUR.md").read_text()
        path_pattern = re.compile(r"[`(]((?:[\w.-]+/)*[\w.-]+\.(?:h|cpp|py|md|txt|cmake))[`)]")
        for number, line in enumerate(text.split("\n"), 1):
            for path in path_pattern.findall(line):
                if path not in self.files and f"src/{path}" not in self.files:
                    self.report("TOUR.md", number, f"{path} does not exist")

    def check_objects(self, build):
        """A weak symbol from a file compiled for AVX may be linked into everyone's program."""
        for item in sorted(build.rglob("*.o")):
            isa = re.search(r"_(avx\w*|amx\w*|neon)\.cpp\.o$", item.name)
            if not isa:
                self.check_instructions(item)
            if "backends" not in item.parts or not isa or "_test" in str(item):
                continue
            symbols = subprocess.run(["nm", "-C", "--defined-only", str(item)],
                                     capture_output=True, text=True, check=True).stdout
            for line in symbols.splitlines():
                kind, _, symbol = line[17:].partition(" ")
                if kind not in "WVu" or symbol.startswith("DW.ref."):
                    continue
                if not re.search(r"\bcairn::(avx|amx|neon)\w*::", symbol):
                    self.report(item.name, 1, f"weak symbol outside {isa[1]}: {symbol[:90]}")

    def check_instructions(self, item):
        """The program starts on x86-64-v2: newer instructions only where they are chosen for."""
        if item.name.removesuffix(".o") in CHOOSE_THEMSELVES:
            return
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(item)],
                              capture_output=True, text=True, check=True).stdout
        for instruction in sorted(new_instructions(text)):
            self.report(item.name, 1, f"{instruction} is not in x86-64-v2")

    def run(self, objects):
        for name in self.files:
            self.check_file(name)
        self.check_modules()
        self.check_tests()
        self.check_tour()
        if objects:
            self.check_objects(objects)
        for problem in self.problems:
            print(problem)
        return 1 if self.problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    parser.add_argument("--objects", type=pathlib.Path)
    options = parser.parse_args()
    return Tidy(options.root).run(options.objects)


if __name__ == "__main__":
    sys.exit(main())
