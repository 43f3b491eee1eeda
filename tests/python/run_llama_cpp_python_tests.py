"""Runs the tests of llama-cpp-python 0.3.36, unchanged, over cairn.

    run_llama_cpp_python_tests.py --cairn PROGRAM [--source FOLDER] [--models FOLDER] [PYTEST…]

Their sources come from the package index, or from a folder that has them. What they import is put
in place: `llama_cpp` is cairn.llama_cpp_compat, models of a hub are made with random weights by
`cairn synth`, and two functions of scipy and huggingface_hub are here. Three tests are left out, by
name and with the reason. Answers with 77 where the sources cannot be had.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tarfile
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

VERSION = "0.3.36"
UNAVAILABLE = 77

# Parts of the names of files that the tests ask a hub for, and what stands in for them.
MODELS = {
    "stories15M": "llama",
    "mamba": "mamba",
    "Falcon-H1": "falcon-h1",
    "bge": "bert",
    "Qwen": "llama",
}

LEFT_OUT = {
    "test_real_model": "calls the C functions llama_*, which are not mirrored",
    "test_real_llama": "expects what a certain real model says",
    "test_real_llama_repeated_prompt_cache": "expects what a certain real model says; that a "
    "second call equals the first is tested in llama_memory_test.py",
}


def find_sources(given: str | None, scratch: Path) -> Path | None:
    """The folder of the tests' package; None: it can be had from nowhere."""
    if given is not None:
        return Path(given)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
    command += ["--no-build-isolation", "-d", str(scratch), f"llama_cpp_python=={VERSION}"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    archives = list(scratch.glob("llama_cpp_python-*.tar.gz"))
    if not archives:
        return None
    with tarfile.open(archives[0]) as archive:
        wanted = [
            each
            for each in archive.getmembers()
            if "/tests/" in each.name or each.name.endswith("ggml-vocab-llama-spm.gguf")
        ]
        archive.extractall(scratch, wanted, filter="data")
    return scratch / f"llama_cpp_python-{VERSION}"


def make_models(program: str, folder: Path) -> None:
    for like in sorted(set(MODELS.values())):
        path = folder / f"{like}.gguf"
        if not path.exists():
            command = [program, "synth", "--like", like, "-o", str(path)]
            subprocess.run(command, check=True, capture_output=True)


def log_softmax(values: Any, axis: int = -1) -> Any:
    shifted = np.asarray(values) - np.max(values, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def put_in_place(models: Path) -> None:
    """What the tests import, under the names that they use."""

    def hf_hub_download(repo_id: str, filename: str, **options: Any) -> str:
        for part, like in MODELS.items():
            if part in filename:
                return str(models / f"{like}.gguf")
        raise ValueError(f"expected a model of {sorted(MODELS)}, found {filename}")

    package = importlib.import_module("cairn.llama_cpp_compat")
    sys.modules["llama_cpp"] = package
    for name in ("cache", "chat_format", "grammar", "speculative", "tokenizer", "types"):
        part = importlib.import_module(f"cairn.llama_cpp_compat.llama_{name}")
        sys.modules[f"llama_cpp.llama_{name}"] = part
    # Only a test that is left out looks into this one.
    internals = types.ModuleType("llama_cpp._internals")
    sys.modules["llama_cpp._internals"] = internals
    setattr(package, "_internals", internals)
    scipy, special = types.ModuleType("scipy"), types.ModuleType("scipy.special")
    hub = types.ModuleType("huggingface_hub")
    setattr(special, "log_softmax", log_softmax)
    setattr(scipy, "special", special)
    setattr(hub, "hf_hub_download", hf_hub_download)
    sys.modules.update({"scipy": scipy, "scipy.special": special, "huggingface_hub": hub})


class LeftOut:
    """Skips what is left out, each by its name."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            reason = LEFT_OUT.get(item.name)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--source", default=os.environ.get("LLAMA_CPP_PYTHON_SOURCE"))
    parser.add_argument("--models")
    options, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = find_sources(options.source, Path(scratch))
        if source is None:
            print(f"skipped: llama_cpp_python {VERSION} is not to be had")
            return UNAVAILABLE
        models = Path(options.models or scratch)
        models.mkdir(parents=True, exist_ok=True)
        make_models(os.path.abspath(options.cairn), models.resolve())
        put_in_place(models.resolve())
        os.chdir(source)
        arguments = ["-p", "no:cacheprovider", "-rs", "-q", "tests", *others]
        return int(pytest.main(arguments, plugins=[LeftOut()]))


if __name__ == "__main__":
    sys.exit(main())
