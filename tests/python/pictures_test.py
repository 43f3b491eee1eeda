"""The picture of a conversation that branches is measured: it must be what is measured today."""
import pathlib
import sys

from conftest import NANO

ROOT = pathlib.Path(NANO).parent.parent
sys.path.insert(0, str(ROOT / "tools"))


def test_what_memory_holds_is_what_the_picture_says():
    import make_pictures

    assert make_pictures.branch() == (ROOT / "docs/pictures/branch.svg").read_text()
