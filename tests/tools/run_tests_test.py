"""Tests tools/run_tests.py with a program that pretends to be a GoogleTest one."""
import contextlib
import io
import os
import pathlib
import re
import signal
import stat
import subprocess
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

    def test_what_was_expected_is_said_again_at_the_end(self):
        noise = [f"noise {i}" for i in range(30)]
        report, printed = run_tests.Report(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            report.add("p.A.expects", "failed",
                       [*noise, "a.cpp:7: Failure", "Expected: 1", "Found: 2", *noise])
            report.add("script", "failed", [*noise, "ValueError: no"])
            report.add("p.B.reads", "failed",
                       [*noise, "==1==ERROR: AddressSanitizer: heap-use-after-free", *noise])
            report.finish()
        end = printed.getvalue().split("Failed:\n")[1].splitlines()
        self.assertEqual(end[:4], ["  p.A.expects", "    a.cpp:7: Failure", "    Expected: 1",
                                   "    Found: 2"])
        self.assertEqual(end[end.index("  p.B.reads") + 1],
                         "    ==1==ERROR: AddressSanitizer: heap-use-after-free")
        script = end.index("  script")
        self.assertEqual(end[script + run_tests.WHY_LINES], "    ValueError: no")
        self.assertEqual(end[script + 1], "    noise 19")

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

    def test_what_was_ignored_is_not_by_programs_under_test(self):
        ends = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        handlers = [signal.signal(end, signal.SIG_IGN) for end in ends]
        try:
            self.assertEqual(self.ignored_by_a_child(ends), set(ends), "so that this test can fail")
            run_tests.hear_ignored_signals()
            self.assertEqual(self.ignored_by_a_child(ends), set())
            for end in ends:
                os.kill(os.getpid(), end)  # Still ignored here.
        finally:
            for end, handler in zip(ends, handlers):
                signal.signal(end, handler)

    @staticmethod
    def ignored_by_a_child(ends):
        status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
        mask = int(re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)[1], 16)
        return {end for end in ends if mask >> (end - 1) & 1}


if __name__ == "__main__":
    unittest.main()
