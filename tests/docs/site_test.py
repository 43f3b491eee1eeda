#!/usr/bin/env python3
"""The site: every option, route and function is in its references, and mkdocs finds nothing wrong.

  site_test.py BUILD

Skipped (77) where Python has no mkdocs-material; then the references are looked at all the same.
"""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    program = build / "cairn"
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        subprocess.run([sys.executable, ROOT / "tools/make_site.py", build, out / "site"],
                       check=True)
        docs = out / "site/docs"
        options = (docs / "reference-options.md").read_text(encoding="utf-8")
        manual = subprocess.run([program, "--man-page"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout.replace("\\-", "-")
        names = set(re.findall(r"\\fB(--[a-z0-9-]+)\\fR", manual))
        missing = [option for option in names if option not in options]
        assert len(names) > 150 and not missing, f"options: {len(names)}, missing: {missing}"
        functions = (docs / "reference-c.md").read_text(encoding="utf-8")
        header = (ROOT / "include/cairn.h").read_text(encoding="utf-8")
        names = set(re.findall(r"CAIRN_API [^;(]*?(cairn_\w+)\(", header))
        missing = [function for function in names if function + "(" not in functions]
        assert len(names) > 30 and not missing, f"functions: {len(names)}, missing: {missing}"
        fields = (docs / "reference-http.md").read_text(encoding="utf-8")
        for words in ("## POST /v1/chat/completions", "| `messages` (required) |", "`top_k`"):
            assert words in fields, words
        if importlib.util.find_spec("material") is None:
            print("skipped: expected mkdocs-material, found none")
            sys.exit(77)
        built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict",
                                "--config-file", out / "site/mkdocs.yml", "--site-dir",
                                out / "html"], text=True, capture_output=True, check=False)
        assert built.returncode == 0, built.stdout + built.stderr
        index = json.loads((out / "html/search/search_index.json").read_text(encoding="utf-8"))
        print(f"{len(list((out / 'html').glob('*.html')))} pages, "
              f"{len(index['docs'])} places to be found")


if __name__ == "__main__":
    main()
