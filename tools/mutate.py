#!/usr/bin/env python3
"""Changes one thing at a time in the lines of src/ that were changed, and asks the tests: a change
that no test notices is printed, with the line before and after. Exit code 1 if there is one.

  tools/mutate.py [BASE] [--most N] [--seed N] [--also TARGET]... [--filter PATTERN]

BASE is a commit, by default where the branch left origin/main, else the commit before. All happens
in a copy of the tree, build/mutate/tree. A file is tested by the program of its module, and by that
of the tests that tidy's COVERED_BY names for it.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import tidy

BUILD_SECONDS = 1800  # A mutant that keeps the compiler busy for longer counts as refused by it.
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
         "+=": "-=", "-=": "+=", "&&": "||", "||": "&&"}
# Blanks on both sides tell them from what a template, a pointer or a reference is written with.
SWAP = re.compile(r"(?<= )(?:" + "|".join(map(re.escape, SWAPS)) + r")(?=\s)")
ASSERTION = re.compile(r"\b(?:D?CHECK\w*|static_assert|assert)\s*\(")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
CONDITION = re.compile(r"\bif \(")
CONSTANT = re.compile(r"(?<![\w.'])\d+(?=[uUlLz]*(?![\w.']))")
# A call as a statement of its own, on one line: "pool.free(page);", not "Pool pool(page);".
CALL = re.compile(r"^[ \t]+(?!return\b)([A-Za-z_][\w:.\[\]]*(?:->[\w:.\[\]]+)*\([^\n]*\);)$", re.M)


@dataclasses.dataclass(frozen=True, order=True)
class Mutant:
    """A piece of a file and what stands there instead."""
    name: str
    line: int
    begin: int
    end: int
    text: str

    def of(self, source):
        return source[:self.begin] + self.text + source[self.end:]

    def show(self, source):
        before = source.split("\n")[self.line - 1].strip()
        after = self.of(source).split("\n")[self.line - 1].strip()
        return f"{self.name}:{self.line}: no test notices\n  - {before}\n  + {after}"


def closing(code, opening):
    """Where the parenthesis that opens there is closed; the end of the text if it is not."""
    depth = 0
    for found in re.finditer(r"[()]", code[opening:]):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return opening + found.start()
    return len(code)


def code_of(source):
    """The text as long as it was, blank where nothing is to be changed."""
    code = tidy.without_comments(source)
    code = DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), code)
    while found := ASSERTION.search(code):
        end = closing(code, found.end() - 1) + 1
        code = code[:found.start()] + re.sub(r"[^\n]", " ", code[found.start():end]) + code[end:]
    return code


def pieces(code):
    """Yields (begin, end, text instead) for all of a file."""
    for found in SWAP.finditer(code):
        yield found.start(), found.end(), SWAPS[found[0]]
    for found in re.finditer(r"\b(?:true|false)\b", code):
        yield found.start(), found.end(), "false" if found[0] == "true" else "true"
    for found in CONSTANT.finditer(code):
        value = found[0]
        yield found.start(), found.end(), {"0": "1", "1": "0"}.get(value) or str(int(value) + 1)
    for found in CONDITION.finditer(code):
        begin, end = found.end(), closing(code, found.end() - 1)
        condition = code[begin:end]
        if end < len(code) and ";" not in condition and not re.search(r"[^=<>!]=[^=]", condition):
            yield begin, end, None
    for found in CALL.finditer(code):
        if not code[:found.start()].rstrip().endswith((";", "{", "}", ")", ":", "else")):
            continue  # The rest of a statement that began on a line before.
        yield found.start(1), found.end(1), ";"


def mutants_of(name, source, lines):
    """The changes that begin in one of the lines."""
    code = code_of(source)
    inside = set()
    for what, first, *rest in tidy.walk_scopes(code):
        if what == "function":
            inside.update(range(first, first + rest[0]))
    for begin, end, text in pieces(code):
        line = source.count("\n", 0, begin) + 1
        if line not in lines or (text == ";" and line not in inside):
            continue
        yield Mutant(name, line, begin, end, f"!({source[begin:end]})" if text is None else text)


def git(root, *words):
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def changed_lines(root, base):
    """{file of src/: numbers of its lines that are not in the commit}, uncommitted ones too."""
    changed, name = {}, None
    for line in (git(root, "diff", "-U0", "-M", "--no-color", base, "--", "src") or "").split("\n"):
        if line.startswith("+++ "):
            name = line[6:] if line.startswith("+++ b/") else None
        elif name and (found := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line)):
            first, count = int(found[1]), int(found[2] or 1)
            changed.setdefault(name, set()).update(range(first, first + count))
    for name in (git(root, "ls-files", "-o", "--exclude-standard", "--", "src") or "").split("\n"):
        if name:
            changed[name] = set(range(1, (root / name).read_text().count("\n") + 2))
    return {name: lines for name, lines in sorted(changed.items())
            if lines and name.endswith((".h", ".cpp"))}


def usual_base(root):
    left = (git(root, "merge-base", "HEAD", "origin/main") or "").strip()
    return left if left and changed_lines(root, left) else "HEAD~1"


def targets_of(name, also):
    """The test programs that a file is tested by."""
    modules = [name.split("/")[1]]
    if cover := tidy.cover_of(name, tidy.COVERED_BY):
        modules.append(cover[1].split("/")[1])
    return list(dict.fromkeys([f"{module}_test" for module in modules] + also))


def copy_tree(root, to):
    """Makes `to` hold what the tree holds and git does not ignore; equal files keep their dates."""
    names = {n for n in (git(root, "ls-files", "-co", "--exclude-standard") or "").split("\n")
             if n and (root / n).is_file()}
    for name in names:
        target = to / name
        if not target.is_file() or target.read_bytes() != (root / name).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target)
    for path in list((to / "src").rglob("*")) + list((to / "tests").rglob("*")):
        if path.is_file() and str(path.relative_to(to)) not in names:
            path.unlink()


@contextlib.contextmanager
def replaced(path, text):
    """The file holds the text for as long as this lasts, whatever ends it."""
    before = path.read_bytes()
    try:
        path.write_text(text)
        yield
    finally:
        path.write_bytes(before)


class Project:
    """Builds and runs test programs of a tree."""

    def __init__(self, tree, pattern):
        self.tree, self.pattern, self.seconds = tree, pattern, {}

    def compiled(self):
        """The sources that this machine compiles; configures where nobody has."""
        if not (self.tree / "build" / "build.ninja").is_file():
            subprocess.run(["cmake", "--preset", "release"], cwd=self.tree, check=True,
                           stdout=sys.stderr)
        entries = json.loads((self.tree / "build" / "compile_commands.json").read_text())
        return {os.path.relpath(entry["file"], self.tree) for entry in entries}

    def build(self, targets):
        """What the compiler says where it refuses; None where it does not."""
        try:
            done = subprocess.run(["ninja", "-C", "build", *targets], cwd=self.tree, text=True,
                                  capture_output=True, timeout=BUILD_SECONDS)
        except subprocess.TimeoutExpired:
            return f"took longer than {BUILD_SECONDS} seconds"
        return done.stdout[-4000:] if done.returncode else None

    def run(self, target):
        """'passed', 'failed' or 'timed out'. The first run, of the tree as it is, says how long the
        others may take."""
        limit, start = self.seconds.get(target), time.monotonic()
        shards = len(os.sched_getaffinity(0))
        running = []
        try:
            for shard in range(shards):
                environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(shards),
                               "GTEST_SHARD_INDEX": str(shard)}
                running.append(subprocess.Popen(
                    [f"build/tests/{target}", "--gtest_brief=1", "--gtest_fail_fast",
                     f"--gtest_filter={self.pattern}"], cwd=self.tree, env=environment,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL))
            while True:
                codes = [process.poll() for process in running]
                if any(codes):
                    return "failed"
                if None not in codes:
                    self.seconds.setdefault(target, 10 + 4 * (time.monotonic() - start))
                    return "passed"
                if limit and time.monotonic() - start > limit:
                    return "timed out"
                time.sleep(0.02)
        finally:
            for process in running:
                if process.poll() is None:
                    process.kill()
                process.wait()


def outcome(project, targets):
    """'compiler', 'tests', 'clock' or 'nobody': who notices."""
    if project.build(targets) is not None:
        return "compiler"
    for target in targets:
        result = project.run(target)
        if result != "passed":
            return "clock" if result == "timed out" else "tests"
    return "nobody"


def check(tree, project, mutants, also=(), progress=None):
    """Tries each; returns {who noticed: mutants}. Errors: RuntimeError where the tests of the tree
    as it is fail, for then they say nothing."""
    targets = {name: targets_of(name, list(also)) for name in {m.name for m in mutants}}
    all_targets = sorted({target for some in targets.values() for target in some})
    if mutants:
        said = project.build(all_targets)
        if said is not None:
            raise RuntimeError(f"expected a tree that builds, found\n{said}")
    for target in all_targets:
        if (result := project.run(target)) != "passed":
            raise RuntimeError(f"{target}: expected tests that pass without a change: {result}")
    noticed = {"compiler": [], "tests": [], "clock": [], "nobody": []}
    for index, mutant in enumerate(mutants):
        if progress:
            progress(index, mutant)
        path = tree / mutant.name
        source = path.read_text()
        with replaced(path, mutant.of(source)):
            by = outcome(project, targets[mutant.name])
        noticed[by].append(mutant)
        if by == "nobody":
            print(mutant.show(source), flush=True)
    return noticed


def find_mutants(root, base, most, seed):
    """(those to try, in the order of files and lines; how many there were)."""
    found = sorted({mutant for name, lines in changed_lines(root, base).items()
                    for mutant in mutants_of(name, (root / name).read_text(), lines)})
    some = found if len(found) <= most else sorted(random.Random(seed).sample(found, most))
    return some, len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?")
    parser.add_argument("--most", type=int, default=20, help="try so many (20)")
    parser.add_argument("--seed", type=int, default=0, help="which ones, where there are more (0)")
    parser.add_argument("--also", action="append", default=[], metavar="TARGET",
                        help="a test program to ask as well: engine_test")
    parser.add_argument("--filter", default="*", help="only these tests (--gtest_filter)")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    base = options.base or usual_base(root)
    if git(root, "rev-parse", "--verify", base + "^{commit}") is None:
        print(f"mutate: expected a commit, found '{base}'", file=sys.stderr)
        return 2
    tree = root / "build" / "mutate" / "tree"
    copy_tree(root, tree)
    # Tests look for other people's data beside the checkout.
    if (root.parent / "shared").is_dir() and not (tree.parent / "shared").exists():
        (tree.parent / "shared").symlink_to(root.parent / "shared")
    project = Project(tree, options.filter)
    mutants, count = find_mutants(root, base, options.most, options.seed)
    compiled = project.compiled() if mutants else set()
    mutants = [m for m in mutants if m.name.endswith(".h") or m.name in compiled]

    def progress(index, mutant):
        if sys.stderr.isatty():
            print(f"\r\033[K{index + 1} of {len(mutants)}: {mutant.name}:{mutant.line} ", end="",
                  file=sys.stderr, flush=True)
    try:
        noticed = check(tree, project, mutants, options.also, progress)
    except RuntimeError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2
    print(f"{len(mutants)} of {count} changes tried: noticed by the compiler "
          f"{len(noticed['compiler'])}, by tests {len(noticed['tests'])}, by the clock "
          f"{len(noticed['clock'])}, by nobody {len(noticed['nobody'])}")
    return 1 if noticed["nobody"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
