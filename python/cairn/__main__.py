"""`python -m cairn ARGUMENTS`: the program cairn, such as `python -m cairn serve MODEL`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def program() -> str:
    """The package's own program, else the one that the shell would find.

    Raises:
        SystemExit: there is none.
    """
    own = Path(__file__).parent / "_lib" / "cairn"
    if own.exists():
        return str(own)
    found = os.environ.get("CAIRN_PROGRAM") or shutil.which("cairn")
    if found is None:
        raise SystemExit("cairn: expected the program in the package or on the PATH, found none")
    return found


def main() -> None:
    name = program()
    os.execv(name, [name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
