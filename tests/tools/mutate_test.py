"""tools/mutate.py on a small tree, with pretended builds and tests: what it changes, what it leaves
alone, what it reports, and that files are as they were."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import mutate  # noqa: E402

BEFORE = "// A thing.\nint first() {\n  return 1 + 2;\n}\n"
AFTER = BEFORE + "int second(int a, int b) {\n  if (a < b) return 7;\n  return 0;\n}\n"
EVERYTHING = r'''// a < b && true, 1 + 2
#include "a < b.h"
#define LESS(a, b) a < b || \
  a == 0
static_assert(sizeof(int) == 4);
bool f(int a, std::vector<int> b) {
  CHECK(a < 3 &&
        a > 0, "a + b");
  if (a <= int(b.size())) say("x == 1");
  if (const int c = g(a); c != x) return true;
  Pool pool(a);
  pool.free(a);
  return a - y == z && u ||
         call(a);
}
'''


class Pretended:
    """A project whose tests are a function of the texts; it notes what it saw."""

    def __init__(self, tree, passes, builds=lambda text: True):
        self.tree, self.passes, self.builds = tree, passes, builds
        self.built, self.seen = [], []

    def text(self):
        return (self.tree / "src/base/thing.cpp").read_text()

    def build(self, targets):
        self.built.append(targets)
        return None if self.builds(self.text()) else "error"

    def run(self, target):
        self.seen.append(self.text())
        return self.passes(self.text())


class MutateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.path = self.root / "src/base/thing.cpp"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(BEFORE)
        self.git("init", "-q", "-b", "main")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.root,
                       check=True, capture_output=True)

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "x", "--no-verify")

    def mutants(self, most=1000, seed=0, base="HEAD"):
        return mutate.find_mutants(self.root, base, most, seed)[0]

    def check(self, project, **settings):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            noticed = mutate.check(self.root, project, self.mutants(**settings))
        return noticed, said.getvalue()

    def test_changes_of_every_sort(self):
        lines = set(range(1, EVERYTHING.count("\n") + 1))
        shown = [m.show(EVERYTHING).split("\n  + ")[1]
                 for m in mutate.mutants_of("src/base/a.cpp", EVERYTHING, lines)]
        self.assertEqual(sorted(shown), sorted([
            'if (a < int(b.size())) say("x == 1");', 'if (!(a <= int(b.size()))) say("x == 1");',
            "if (const int c = g(a); c == x) return true;",
            "if (const int c = g(a); c != x) return false;", ";",
            "return a + y == z && u ||", "return a - y != z && u ||", "return a - y == z || u ||",
            "return a - y == z && u &&"]))

    def test_constants(self):
        shown = [m.text for m in mutate.mutants_of(
            "src/base/a.cpp", "const int kA[] = {0, 1, 41};\nfloat b = 1.5f + x2;\n", {1})]
        self.assertEqual(shown, ["1", "0", "42"])

    def test_changed_lines(self):
        self.path.write_text(AFTER)
        (self.root / "src/base/new.h").write_text("// New.\nint third();\n")
        (self.root / "src/base/note.md").write_text("1 < 2\n")
        changed = mutate.changed_lines(self.root, "HEAD")
        self.assertEqual(changed["src/base/thing.cpp"], {5, 6, 7, 8})
        self.assertIn(2, changed["src/base/new.h"])
        self.assertEqual(len(changed), 2)
        self.commit()
        self.assertEqual(mutate.changed_lines(self.root, "HEAD"), {})
        self.assertEqual(mutate.usual_base(self.root), "HEAD~1")
        self.assertEqual(mutate.changed_lines(self.root, "HEAD~1")["src/base/thing.cpp"],
                         {5, 6, 7, 8})
        self.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
        self.assertNotEqual(mutate.usual_base(self.root), "HEAD~1")

    def test_finds_the_one_that_nobody_notices(self):
        self.path.write_text(AFTER)

        def passes(text):  # These tests know nothing of what a == b gives.
            lenient = text.replace("a <= b", "a < b")
            return "passed" if lenient == AFTER else "failed"
        noticed, said = self.check(Pretended(self.root, passes))
        self.assertEqual([m.text for m in noticed["nobody"]], ["<="])
        self.assertEqual(len(noticed["tests"]), 3)
        self.assertEqual(said, "src/base/thing.cpp:6: no test notices\n"
                               "  - if (a < b) return 7;\n  + if (a <= b) return 7;\n")
        self.assertEqual(self.path.read_text(), AFTER)

    def test_compiler_and_clock_notice_too(self):
        self.path.write_text(AFTER)
        project = Pretended(self.root,
                            lambda text: "timed out" if "return 8" in text else "passed",
                            lambda text: "a <= b" not in text and "!(" not in text)
        noticed, _ = self.check(project)
        counts = {who: len(mutants) for who, mutants in noticed.items()}
        self.assertEqual(counts, {"compiler": 2, "tests": 0, "clock": 1, "nobody": 1})
        self.assertEqual(project.built[0], ["base_test"])

    def test_a_tree_that_fails_says_nothing(self):
        self.path.write_text(AFTER)
        for project in (Pretended(self.root, lambda text: "failed"),
                        Pretended(self.root, lambda text: "passed", lambda text: False)):
            with self.assertRaises(RuntimeError):
                self.check(project)

    def test_restores_whatever_happens(self):
        self.path.write_text(AFTER)

        def interrupt(text):
            if text != AFTER:
                raise KeyboardInterrupt
            return "passed"
        project = Pretended(self.root, interrupt)
        with self.assertRaises(KeyboardInterrupt):
            self.check(project)
        self.assertNotEqual(project.seen[-1], AFTER)
        self.assertEqual(self.path.read_text(), AFTER)

    def test_samples_by_seed(self):
        self.path.write_text(AFTER)
        every = self.mutants()
        some = self.mutants(most=2, seed=1)
        self.assertEqual(len(some), 2)
        self.assertTrue(set(some) <= set(every))
        self.assertEqual(some, self.mutants(most=2, seed=1))
        self.assertGreater(len({tuple(self.mutants(most=2, seed=seed)) for seed in range(9)}), 1)

    def test_programs_of_a_file(self):
        self.assertEqual(mutate.targets_of("src/base/thing.cpp", ["cli_test"]),
                         ["base_test", "cli_test"])
        self.assertEqual(mutate.targets_of("src/graph/blocks/mlp.cpp", []),
                         ["graph_test", "models_test"])

    def test_copies_what_git_knows_and_takes_away_what_is_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            (copy / "src").mkdir()
            (copy / "src/gone.cpp").write_text("x")
            self.path.write_text(AFTER)
            (self.root / ".gitignore").write_text("build\n")
            (self.root / "build").mkdir()
            (self.root / "build/cairn").write_text("x")
            mutate.copy_tree(self.root, copy)
            self.assertEqual((copy / "src/base/thing.cpp").read_text(), AFTER)
            self.assertFalse((copy / "src/gone.cpp").exists())
            self.assertFalse((copy / "build").exists())


if __name__ == "__main__":
    unittest.main()
