#!/usr/bin/env python3
"""Whether two builds made the same bytes: programs and libraries, static ones too.

  tools/compare_builds.py BUILD BUILD
"""
import hashlib
import sys
from pathlib import Path

PATTERNS = ("cairn", "libcairn.so.*.*", "libcairn.a", "src/libcairn*.a", "src/**/libcairn*.a")


def products(build):
    """The SHA-256 of each product, by its path within the build."""
    found = {path for pattern in PATTERNS for path in Path(build).glob(pattern) if path.is_file()}
    return {str(path.relative_to(build)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in found if not path.is_symlink()}


def differences(first, second):
    """Names of what differs or is in one alone."""
    return sorted(name for name in first.keys() | second.keys()
                  if first.get(name) != second.get(name))


def main():
    first, second = (products(build) for build in sys.argv[1:3])
    if not first:
        sys.exit(f"{sys.argv[1]}: expected a build, found nothing that one makes")
    differing = differences(first, second)
    for name in sorted(first):
        print(first[name][:16], "differs" if name in differing else "the same", name)
    if differing:
        sys.exit(f"{len(differing)} of {len(first)} files differ: {', '.join(differing)}")
    print(f"{len(first)} files, the same bytes")


if __name__ == "__main__":
    main()
