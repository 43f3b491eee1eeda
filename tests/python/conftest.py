"""What the tests of the Python package share: models, and an engine of the built-in one."""
import os
import pathlib

import pytest

import cairn

SOURCE = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["CAIRN_BUILD"])
NANO = str(SOURCE / "assets" / "nano.gguf")
PARIS = [{"role": "user", "content": "What is the capital of France?"}]
GREEDY = cairn.Sampling(temperature=0, max_tokens=32)


def golden(name):
    return str(BUILD / "fixtures" / "golden" / f"{name}.gguf")


@pytest.fixture(scope="session")
def model():
    with cairn.Model(NANO) as opened:
        yield opened


@pytest.fixture(scope="session")
def engine(model):
    with cairn.Engine(model, memory="64MiB", threads=1) as opened:
        yield opened


@pytest.fixture
def session(engine):
    with engine.session(sampling=GREEDY) as opened:
        yield opened
