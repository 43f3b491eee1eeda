"""Backends by name, and the package on the library that has the fake one."""
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BUILD, NANO

import cairn

LIBRARY = BUILD / "tests" / "libcairn_with_fake.so"


def test_backends_are_listed():
    found = cairn.backends()
    own = next(each for each in found if each.name == "cairn")
    assert own.available and own.why_not == "" and own.rank == 0
    assert own.capabilities == {"rewind", "snapshot"} and own.exactness == "bitwise"
    with cairn.Model(NANO) as model:
        with cairn.Engine(model, memory="64MiB", threads=1, backend="cairn") as engine:
            assert engine.facts.backend == "cairn"
            assert engine.facts.native_capabilities == engine.facts.capabilities
        with pytest.raises(cairn.InvalidError, match="backend: expected .*cairn.* found none"):
            cairn.Engine(model, backend="none")


@pytest.mark.skipif(not LIBRARY.exists(), reason="the library with the fake runtime is not built")
def test_on_the_fake_backend():
    """In a process of its own: a library is loaded once."""
    cases = pathlib.Path(__file__).with_name("fake_backend_cases.py")
    environment = {**os.environ, "CAIRN_LIBRARY": str(LIBRARY), "CAIRN_BACKEND": "fake"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)],
        env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0 and "3 passed" in ended.stdout, ended.stdout + ended.stderr
