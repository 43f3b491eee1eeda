#!/usr/bin/env python3
"""The tests of the Python package, on the library of a build folder. Exits 77 where pytest or numpy
are not installed, in Python's own folders or in the second one given.

  run_tests.py BUILD [PACKAGES [--llama-cpp-python | PYTEST_ARGUMENT...]]

--llama-cpp-python: the tests of that package, unchanged, in place of our own.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).parent
build = pathlib.Path(sys.argv[1]).resolve()
packages, arguments = sys.argv[2:3], sys.argv[3:]
sys.path += packages
for name in ("pytest", "numpy"):
    if importlib.util.find_spec(name) is None:
        print(f"the Python package {name} is not installed")
        sys.exit(77)
paths = [str(here.parents[1] / "python"), *packages, *filter(None, [os.environ.get("PYTHONPATH")])]
environment = {**os.environ, "CAIRN_BUILD": str(build), "PYTHONDONTWRITEBYTECODE": "1",
               "CAIRN_LIBRARY": str(build / "libcairn.so"), "PYTHONPATH": os.pathsep.join(paths)}
if arguments[:1] == ["--llama-cpp-python"]:
    command = [str(here / "run_llama_cpp_python_tests.py"), "--cairn", str(build / "cairn")]
else:
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "python_files=*_test.py",
               "-rs", "--durations=5", *arguments, str(here)]
sys.exit(subprocess.run([sys.executable, *command], env=environment, cwd=here).returncode)
