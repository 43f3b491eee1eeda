#!/usr/bin/env python3
"""The tests of the Python package, on the library of a build folder. Exits 77 where pytest or numpy
are not installed, in Python's own folders or in the second one given.

  run_tests.py BUILD [PACKAGES]
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).parent
build = pathlib.Path(sys.argv[1]).resolve()
packages = sys.argv[2:3]
sys.path += packages
for name in ("pytest", "numpy"):
    if importlib.util.find_spec(name) is None:
        print(f"the Python package {name} is not installed")
        sys.exit(77)
paths = [str(here.parents[1] / "python"), *packages, *filter(None, [os.environ.get("PYTHONPATH")])]
environment = {**os.environ, "CAIRN_BUILD": str(build), "PYTHONDONTWRITEBYTECODE": "1",
               "CAIRN_LIBRARY": str(build / "libcairn.so"), "PYTHONPATH": os.pathsep.join(paths)}
sys.exit(subprocess.run(
    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o",
     "python_files=*_test.py llama_test_*.py", "-rs", "--durations=5", *sys.argv[3:], str(here)],
    env=environment, cwd=here).returncode)
