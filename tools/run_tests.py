#!/usr/bin/env python3
"""Runs the tests of a build folder: a line for each program, each failure with what it printed, and
in the last line how many passed, failed and were skipped. Exit code 1 if one failed.

  tools/run_tests.py BUILD_DIR [PATTERN] [--without LABEL] [--jobs N] [--slowest N]

PATTERN is a regular expression; it selects tests by their names: program.Suite.Test. What there is
to run is asked of ctest. Tests of one program (label gtest) run many to a process; where one takes
the process down, it has failed, and those behind it go on in another.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

SLICE = 24             # Tests of one process: enough to share its start, few enough to share out.
TEST_SECONDS = 600     # Of one test.
OUTPUT_LINES = 200     # Of a failure; the end says most.
WHY_LINES = 12         # Of these, what is said once more behind the names of what failed.
# Above what GoogleTest expected and what it found, or what a sanitizer says.
EXPECTED = re.compile(r":\d+: Failure$|==ERROR: \w+Sanitizer: |: runtime error: ")
STARTED = re.compile(r"^\[ RUN      \] (\S+)$")
ENDED = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] (\S+?)(?:, where .*)? \((\d+) ms\)$")
OUTCOMES = {"       OK ": "passed", "  FAILED  ": "failed", "  SKIPPED ": "skipped"}


def why(output):
    """The lines that say most about a failure: what was expected first, or the last ones."""
    first = next((i for i, line in enumerate(output) if EXPECTED.search(line)), -WHY_LINES)
    return output[first:][:WHY_LINES]


class Report:
    """Counts outcomes and prints what went wrong. Thread-safe."""

    def __init__(self):
        self.lock, self.outcomes, self.notes = threading.Lock(), {}, set()
        self.seconds, self.whys = {}, {}

    def add(self, name, outcome, output=(), seconds=0.0):
        with self.lock:
            self.outcomes[name], self.seconds[name] = outcome, seconds
            self.notes.update(line for line in output if line.startswith("AMX tiles by: "))
            if outcome == "failed":
                self.whys[name] = why(list(output))
                print(f"--- FAILED: {name}", *list(output)[-OUTPUT_LINES:], sep="\n", flush=True)

    def count(self, outcome):
        return sum(found == outcome for found in self.outcomes.values())

    def finish(self, slowest=0):
        for name in sorted(self.seconds, key=self.seconds.get, reverse=True)[:slowest]:
            print(f"{self.seconds[name]:7.1f} s  {name}")
        for note in sorted(self.notes):
            print(note)
        for outcome in ("skipped", "failed"):
            names = sorted(name for name, found in self.outcomes.items() if found == outcome)
            if names:
                print(f"{outcome.capitalize()}:")
            for name in names:
                print(f"  {name}", *self.whys.get(name, ()), sep="\n    ")
        print(f"{self.count('passed')} passed, {self.count('failed')} failed, "
              f"{self.count('skipped')} skipped", flush=True)
        return 1 if self.count("failed") or not self.outcomes else 0


def how_it_ended(code, timed_out, seconds):
    if timed_out:
        return f"took longer than {seconds} seconds"
    if code < 0:
        return f"took the process down: {signal.Signals(-code).name}"
    return f"ended the process with exit code {code}"


class Program:
    """A GoogleTest program and those of its tests that shall run."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment

    def tests(self, pattern):
        listed = subprocess.run([*self.command, "--gtest_list_tests"], env=self.environment,
                                capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if listed.returncode != 0:
            raise RuntimeError(f"{self.name}: its tests cannot be listed:\n{listed.stderr}")
        found, suite = [], ""
        for line in listed.stdout.splitlines():
            word = line.split("#")[0].strip()
            if line.startswith("  "):
                if "DISABLED_" not in suite + word and pattern.search(
                        f"{self.name}.{suite}{word}"):
                    found.append(suite + word)
            elif word.endswith("."):
                suite = word
        return found

    def run_slice(self, tests, report, seconds=TEST_SECONDS):
        """Runs the tests, in as many processes as it takes."""
        waiting = list(tests)
        while waiting:
            ended = self.run_once(waiting, report, seconds)
            if not ended:
                for test in waiting:
                    report.add(f"{self.name}.{test}", "failed", ["never started"])
                return
            waiting = [test for test in waiting if test not in ended]

    def run_once(self, tests, report, seconds):
        """Runs them in one process, as far as it comes; returns those that have an outcome."""
        process = subprocess.Popen(
            [*self.command, "--gtest_color=no", "--gtest_filter=" + ":".join(tests)],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        ended, running, output, timed_out = set(), None, [], []

        def stop():
            timed_out.append(True)
            os.killpg(process.pid, signal.SIGKILL)
        watch = threading.Timer(seconds, stop)
        watch.start()
        for line in process.stdout:
            line = line.rstrip("\n")
            if found := STARTED.match(line):
                running, output = found[1], []
                watch.cancel()
                watch = threading.Timer(seconds, stop)
                watch.start()
            elif (found := ENDED.search(line)) and found[2] == running:
                report.add(f"{self.name}.{running}", OUTCOMES[found[1]], output,
                           int(found[3]) / 1000)
                ended.add(running)
                running, output = None, []
            else:
                output.append(line)
        process.stdout.close()
        code = process.wait()
        watch.cancel()
        failed_before = any(report.outcomes[f"{self.name}.{t}"] == "failed" for t in ended)
        if running:
            report.add(f"{self.name}.{running}", "failed",
                       [*output, how_it_ended(code, timed_out, seconds)])
            ended.add(running)
        elif code != 0 and ended and not failed_before:
            # A sanitizer speaks when the process ends; it cannot say of which test.
            report.add(f"{self.name}: the end of a process after {tests[0]}", "failed",
                       [*output, how_it_ended(code, timed_out, seconds)])
        return ended


def run_command(name, test, properties, environment, report):
    """Any other test: its exit code says how it went."""
    limit = properties.get("TIMEOUT", TEST_SECONDS)
    try:
        done = subprocess.run(test["command"], env=environment, stdin=subprocess.DEVNULL,
                              cwd=properties.get("WORKING_DIRECTORY"), capture_output=True,
                              text=True, errors="replace", timeout=limit)
    except subprocess.TimeoutExpired:
        report.add(name, "failed", [f"took longer than {limit} seconds"])
        return
    outcome = "passed" if done.returncode == 0 else "failed"
    if done.returncode != 0 and done.returncode == properties.get("SKIP_RETURN_CODE"):
        outcome = "skipped"
    report.add(name, outcome, (done.stdout + done.stderr).splitlines())


def plan(build, pattern, without):
    """Yields (name, piece of work that takes a report) for what ctest knows of."""
    listed = subprocess.run(["ctest", "--show-only=json-v1", "--test-dir", str(build)],
                            capture_output=True, text=True, check=True)
    for test in json.loads(listed.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = properties.get("LABELS", [])
        if without in labels:
            continue
        environment = {**os.environ,
                       **dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))}
        if "gtest" in labels:
            program = Program(test["name"], test["command"], environment)
            tests = program.tests(pattern)
            for first in range(0, len(tests), SLICE):
                some = tests[first:first + SLICE]
                yield test["name"], lambda report, p=program, s=some: p.run_slice(s, report)
        elif pattern.search(test["name"]):
            yield test["name"], (lambda report, t=test, p=properties, e=environment:
                                 run_command(t["name"], t, p, e, report))


def run(build, pattern, without, jobs, slowest):
    report, left, start = Report(), {}, time.monotonic()
    work = list(plan(build, pattern, without))
    for name, _ in work:
        left[name] = left.get(name, 0) + 1

    def one(piece):
        name, job = piece
        job(report)
        with report.lock:
            left[name] -= 1
            if left[name] == 0:
                print(f"{time.monotonic() - start:7.1f} s  {name} is through", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(one, piece) for piece in work]:
            done.result()
    if not work:
        print(f"expected tests that match {pattern.pattern!r}, found none")
    return report.finish(slowest)


def hear_ignored_signals():
    """A shell starts what runs in the background with Ctrl-C and Ctrl-\\ ignored, nohup with the
    terminal's end. Programs under test would ignore them too, but not what is handled here."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("pattern", nargs="?", default="", type=re.compile)
    parser.add_argument("--without", metavar="LABEL")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1)
    parser.add_argument("--slowest", metavar="N", type=int, default=0,
                        help="print the N tests that took longest")
    options = parser.parse_args()
    hear_ignored_signals()
    return run(options.build, re.compile(options.pattern), options.without, options.jobs,
               options.slowest)


if __name__ == "__main__":
    sys.exit(main())
