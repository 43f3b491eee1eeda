#!/usr/bin/env python3
"""The table of attacks in docs/security.md: each number has a row, each test that a row names is
there and names the number, and each test that names a number stands in its row."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ATTACK_COUNT = 48
TEST = re.compile(r"TEST(?:_F|_P)?\((\w+), (\w+)\)")


def numbers_in(text):
    """Those of "Attack 7", "Attacks 16 and 17" and "Attack46_"."""
    found = set()
    for first, second in re.findall(r"\bAttacks? ?(\d+)(?: and (\d+))?", text):
        found |= {int(number) for number in (first, second) if number}
    return found


def numbered_tests(root):
    """Of each test whose name or comment has numbers: these."""
    tests, all_names = {}, set()
    for path in sorted(root.glob("tests/**/*_test.cpp")):
        comment = ""
        for line in path.read_text().splitlines():
            if line.startswith("//"):
                comment += " " + line.removeprefix("//").strip()
                continue
            if match := TEST.match(line):
                name = ".".join(match.groups())
                all_names.add(name)
                if numbers := numbers_in(comment) | numbers_in(name.replace(".", " ")):
                    tests[name] = numbers
            comment = ""
    for path in sorted(root.glob("tests/**/*.py")):
        if path.resolve() == Path(__file__).resolve():
            continue
        all_names.add(path.name)
        if numbers := numbers_in(path.read_text()):
            tests[path.name] = numbers
    return tests, all_names


def table_rows(text):
    """Of each number: the attack and its tests, or nothing where the row says that it is open."""
    rows = {}
    for number, attack, tests in re.findall(r"^\| (\d+) \| (.+?) \| (.+) \|$", text, re.M):
        assert int(number) not in rows, f"attack {number}: two rows"
        rows[int(number)] = (attack, re.findall(r"`([\w.]+)`", tests))
    return rows


class Attacks(unittest.TestCase):
    def setUp(self):
        self.rows = table_rows((ROOT / "docs/security.md").read_text())
        self.tests, self.all_names = numbered_tests(ROOT)

    def test_every_number_has_a_row(self):
        self.assertEqual(sorted(self.rows), list(range(1, ATTACK_COUNT + 1)))

    def test_tests_of_rows_are_there_and_name_their_number(self):
        for number, (_, names) in self.rows.items():
            for name in names:
                self.assertTrue(name in self.all_names, f"attack {number}: no test {name}")
                self.assertIn(number, self.tests.get(name, ()), f"{name} names no attack {number}")

    def test_tests_that_name_a_number_stand_in_its_row(self):
        for name, numbers in self.tests.items():
            for number in numbers:
                self.assertIn(name, self.rows[number][1], f"attack {number}")

    def test_rows_without_tests_say_why(self):
        text = (ROOT / "docs/security.md").read_text()
        for number, (_, names) in self.rows.items():
            if not names:
                row = re.search(rf"^\| {number} \|.*$", text, re.M).group()
                self.assertIn("there is no", row)

    def test_numbers_are_read(self):
        self.assertEqual(numbers_in("Attack 7: x. Attacks 16 and 17."), {7, 16, 17})
        self.assertEqual(numbers_in("Inspect Attack46_Controls"), {46})
        self.assertEqual(table_rows("| 3 | a | `A.B`, `c.py` |"), {3: ("a", ["A.B", "c.py"])})


if __name__ == "__main__":
    sys.exit(unittest.main())
