"""Tests tools/run_tests.py with a program that pretends to be a GoogleTest one."""
import contextlib
import io
import os
import pathlib
import re
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import run_tests  # noqa: E402

PRETENDER = r'''#!/usr/bin/env python3
import os, sys, time
tests = ["A.passes", "A.fails", "A.skips", "A.crashes", "A.after", "Long/B.hangs/x",
         "C.DISABLED_no"]
if "--gtest_list_tests" in sys.argv:
    suite = ""
    for test in tests:
        head, name = test.split(".")
        if head != suite:
            print(head + "."); suite = head
        print("  " + name + "  # GetParam() = 8-byte object <00>")
    sys.exit()
wanted = next(a for a in sys.argv if "filter" in a).split("=")[1].split(":")
failed = False
for test in wanted:
    print("[ RUN      ] " + test, flush=True)
    print("noise of " + test, flush=True)
    if "crashes" in test: os.abort()
    if "hangs" in test: time.sleep(60)
    failed |= "fails" in test
    word = "  FAILED  " if "fails" in test else "  SKIPPED " if "skips" in test else "       OK "
    print("unfinished line[" + word + "] " + test + " (0 ms)", flush=True)
sys.exit(3 if os.environ.get("LEAKS") else failed)
'''


class RunTestsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        program = pathlib.Path(self.folder.name) / "pretender"
        program.write_text(PRETENDER)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.program = run_tests.Program("p", [str(program)], dict(os.environ))

    def tearDown(self):
        self.folder.cleanup()

    def run_tests(self, pattern, seconds=30):
        report, printed = run_tests.Report(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.program.run_slice(self.program.tests(re.compile(pattern)), report, seconds)
            self.code = report.finish()
        return report.outcomes, printed.getvalue()

    def test_each_outcome_has_its_name(self):
        outcomes, printed = self.run_tests("A")
        self.assertEqual(outcomes, {"p.A.passes": "passed", "p.A.fails": "failed",
                                    "p.A.skips": "skipped", "p.A.crashes": "failed",
                                    "p.A.after": "passed"})
        self.assertEqual(printed.splitlines()[-1], "2 passed, 2 failed, 1 skipped")
        self.assertIn("took the process down: SIGABRT", printed)
        self.assertIn("noise of A.fails", printed)
        self.assertNotIn("noise of A.passes", printed)
        self.assertEqual(self.code, 1)

    def test_one_that_hangs_is_stopped(self):
        outcomes, printed = self.run_tests("hangs", seconds=1)
        self.assertEqual(outcomes, {"p.Long/B.hangs/x": "failed"})
        self.assertIn("took longer than 1 seconds", printed)

    def test_what_a_process_says_at_its_end_is_a_failure(self):
        self.program.environment["LEAKS"] = "1"
        outcomes, printed = self.run_tests("A.(passes|after)")
        self.assertEqual(sorted(outcomes.values()), ["failed", "passed", "passed"])
        self.assertIn("exit code 3", printed)

    def test_a_pattern_selects(self):
        outcomes, _ = self.run_tests(r"p\.A\.passes$")
        self.assertEqual(outcomes, {"p.A.passes": "passed"})
        self.assertEqual(self.code, 0)

    def test_none_at_all_is_a_failure(self):
        outcomes, _ = self.run_tests("DISABLED")
        self.assertEqual((outcomes, self.code), ({}, 1))


if __name__ == "__main__":
    unittest.main()
