#!/usr/bin/env python3
"""Prints the figures of the house: how long files and functions are, what repeats, what is in a
circle. They say where the tree grows; tools/tidy.py says what it must not do.

  tools/house.py [REV]

Of the working tree, or of a commit.
"""
import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import tidy

SOURCES = (".h", ".cpp")
SHORTEST = 9  # Characters of a line that says anything: neither a brace nor "} else {".
REPEATED_IN = 5


def lines_of(text):
    """What a file says: no comment, no include, no brace alone; each line without its margin."""
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if len(line) >= SHORTEST and not line.startswith(("#", "//"))]


def repeated_share(texts):
    """How many of the lines stand in five or more of the files to the letter, and of how many."""
    files = [lines_of(text) for text in texts]
    holders = collections.Counter(line for lines in files for line in set(lines))
    all_lines = [line for lines in files for line in lines]
    repeated = sum(holders[line] >= REPEATED_IN for line in all_lines)
    return repeated, max(1, len(all_lines))


def cycles(sources):
    """Pairs of modules that reach each other through includes."""
    uses = collections.defaultdict(set)
    for name, text in sources.items():
        module = name.split("/")[1]
        uses[module] |= set(re.findall(r'^#include "(\w+)/', text, re.M)) - {module}
    for middle in list(uses):
        for module in list(uses):
            if middle in uses[module]:
                uses[module] |= uses[middle]
    return sorted({tuple(sorted((a, b))) for a in uses for b in uses[a]
                   if a != b and a in uses.get(b, ())})


def report(root):
    files = {str(path.relative_to(root)): path for path in sorted(root.glob("src/**/*"))
             if path.suffix in SOURCES}
    sources = {name: path.read_text() for name, path in files.items()}
    counts = {name: text.count("\n") for name, text in sources.items()}
    modules = collections.defaultdict(list)
    for name, count in counts.items():
        modules[name.split("/")[1]].append(count)
    print(f"{'module':<12}{'files':>7}{'lines':>8}{'longest':>9}")
    for module, lengths in sorted(modules.items()):
        print(f"{module:<12}{len(lengths):>7}{sum(lengths):>8}{max(lengths):>9}")
    lengths = sorted(counts.values())
    print(f"{'all':<12}{len(lengths):>7}{sum(lengths):>8}{lengths[-1]:>9}")
    print(f"lines of a file: half have at most {lengths[len(lengths) // 2]}, nine of ten "
          f"{lengths[len(lengths) * 9 // 10]}")
    functions = [length for text in sources.values()
                 for kind, _, length, *_ in tidy.walk_scopes(tidy.without_comments(text))
                 if kind == "function"]
    print(f"functions of more than {tidy.FUNCTION_LINES} lines: "
          f"{sum(length > tidy.FUNCTION_LINES for length in functions)} of {len(functions)}")
    folders = collections.Counter(str(pathlib.PurePath(name).parent) for name in sources)
    fullest = ", ".join(f"{folder} {count}" for folder, count in folders.most_common(3))
    print(f"sources in one folder, at most: {fullest}")
    circles = ", ".join(f"{a} and {b}" for a, b in cycles(sources))
    print(f"modules that use each other: {circles or 'none'}")
    models = {name: text for name, text in sources.items()
              if name.startswith("src/models/") and name.endswith(".cpp")}
    alone = [text for name, text in models.items() if re.search(r"\barch_\w+ =", text)]
    for what, texts in (("model files", models.values()), ("architectures alone", alone)):
        repeated, all_lines = repeated_share(texts)
        print(f"lines of {what} that stand in {REPEATED_IN} or more of them: "
              f"{repeated} of {all_lines}, {100 * repeated / all_lines:.1f} %")


def main():
    root = pathlib.Path(__file__).parent.parent
    if len(sys.argv) < 2:
        return report(root)
    tar = subprocess.run(["git", "archive", sys.argv[1], "src"], cwd=root, check=True,
                         capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            archive.extractall(folder)
        return report(pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
