"""What tests of `Llama` share: models with random weights, made once for a run."""

from __future__ import annotations

import os
import subprocess
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NANO = str(ROOT / "assets" / "nano.gguf")

# One for each way in which layers remember: all tokens, a window, states, both.
FAMILIES = ("llama", "gemma3", "mamba", "falcon-h1")


def program() -> str:
    return str(Path(os.environ["CAIRN_BUILD"]) / "cairn")


@lru_cache(maxsize=None)
def folder() -> Path:
    import atexit
    import shutil
    import tempfile

    made = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, made, True)
    return Path(made)


@lru_cache(maxsize=None)
def model(like: str) -> str:
    """The path of a small model of an architecture."""
    path = folder() / f"{like}.gguf"
    command = [program(), "synth", "--like", like, "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return str(path)
