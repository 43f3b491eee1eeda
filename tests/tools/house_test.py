"""The figures of tools/house.py, on texts that are counted by hand."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import house  # noqa: E402  (Found by the line above.)


class House(unittest.TestCase):
    def test_lines_that_say_nothing_do_not_count(self):
        text = '// A comment.\n#include "base/thing.h"\n\n  int first = 1;  \n} else {\n}\n'
        self.assertEqual(house.lines_of(text), ["int first = 1;"])

    def test_a_line_is_repeated_where_it_stands_in_five_files(self):
        shared, rare = "return everything;", "return something;"
        texts = [shared] * 4 + [f"  {shared}\n{shared}\n{rare}"] + [rare] * 3
        # The shared one six times, in five files; the rare one in four.
        self.assertEqual(house.repeated_share(texts), (6, 10))
        self.assertEqual(house.repeated_share(texts[1:]), (0, 9))

    def test_a_circle_goes_through_several_modules(self):
        sources = {"src/a/a.h": '#include "b/b.h"\n', "src/b/b.h": '#include "c/c.h"\n',
                   "src/c/c.h": '#include "d/d.h"\n', "src/d/d.h": "int d();\n"}
        self.assertEqual(house.cycles(sources), [])
        sources["src/c/c.cpp"] = '#include "a/a.h"\n'
        self.assertEqual(house.cycles(sources), [("a", "b"), ("a", "c"), ("b", "c")])


if __name__ == "__main__":
    unittest.main()
