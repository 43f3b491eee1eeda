"""The pictures of the documentation are those of this tree; tests/python/pictures_test.py has the
one that needs the program."""
import pathlib
import sys
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import make_pictures  # noqa: E402  (Found by the line above.)


class Pictures(unittest.TestCase):
    def test_they_are_those_of_the_tree(self):
        for name in ("house", "token", "machines"):
            kept = (ROOT / f"docs/pictures/{name}.svg").read_text()
            self.assertEqual(getattr(make_pictures, name)(), kept,
                             f"{name}.svg is older than the tree: run tools/make_pictures.py")
            xml.etree.ElementTree.fromstring(kept)

    def test_lines_that_follow_from_others_are_left_out(self):
        uses = {"base": [], "json": ["base"], "chat": ["base", "json"]}
        self.assertEqual(list(make_pictures.needed_edges(uses)),
                         [("json", "base"), ("chat", "json")])
        self.assertEqual(make_pictures.floors(uses), {"base": 0, "json": 1, "chat": 2})

    def test_every_station_is_a_file(self):
        parts = make_pictures.stations()
        self.assertEqual([len(entries) for _, entries in parts], [6, 8, 2])

    def test_long_texts_are_broken_between_words(self):
        self.assertEqual(make_pictures.wrapped("one two three", 7), ["one two", "three"])


if __name__ == "__main__":
    unittest.main()
