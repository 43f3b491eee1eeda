#!/usr/bin/env python3
"""Runs the shell blocks (```sh) of README.md and docs/, as a reader would: those of a page one
after another, in a folder with MODEL.gguf (the built-in model), README.md and an empty home.

  shell_blocks.py PROGRAM SOURCE [PAGE...]

A comment in the line before a block says what a reader cannot know of it:
  <!-- not run: WHY -->     more is needed than a clone with its build, or it does not end
  <!-- server: COMMAND -->  this runs meanwhile, on a port that stands for 8080
Exit code 77: a tool that blocks need is missing.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from held_port import hold_port  # noqa: E402

NEEDED = ["bash", "curl", "jq"]


def blocks_of(text):
    """[(line, mark, kind, code)]."""
    found = []
    lines = text.splitlines()
    mark = ""
    at = 0
    while at < len(lines):
        comment = re.fullmatch(r"<!-- (not run|server): (.*) -->", lines[at])
        if comment:
            mark = comment.groups()
        elif lines[at] == "```sh":
            end = lines.index("```", at)
            kind, what = mark or ("", "")
            found.append((at + 1, kind, what, "\n".join(lines[at + 1:end])))
            at = end
            mark = ""
        elif lines[at].strip():
            mark = ""
        at += 1
    return found


def start_server(command, folder, environment, port):
    server = subprocess.Popen(["bash", "-c", "exec " + command], cwd=folder, env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if server.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return server
        time.sleep(0.1)
    server.kill()
    sys.exit(f"{command}: expected a server, found none (exit code {server.wait()})")


def run_block(code, folder, environment):
    """The exit code and what it said."""
    with subprocess.Popen(["bash", "-euo", "pipefail", "-c", code], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, start_new_session=True) as run:
        try:
            said, _ = run.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            return 124, "it did not end"
        return run.returncode, said


def run_page(page, source, program):
    counts = {"run": 0, "not run": 0, "failed": 0}
    with tempfile.TemporaryDirectory() as name, hold_port() as held:
        folder = pathlib.Path(name)
        (folder / "home").mkdir()
        (folder / "bin").mkdir()
        (folder / "bin/cairn").symlink_to(program)
        shutil.copyfile(source / "assets/nano.gguf", folder / "MODEL.gguf")
        shutil.copyfile(source / "README.md", folder / "README.md")
        (folder / "report.txt").write_text("Hello.\n", encoding="utf-8")
        (folder / "handbook.txt").write_text("Be brief.\n", encoding="utf-8")
        port = held.getsockname()[1]
        environment = {"HOME": str(folder / "home"), "LANG": "C.UTF-8", "CAIRN_PORT": str(port),
                       "CAIRN_REQUEST_LOG": "none", "no_proxy": "localhost,127.0.0.1",
                       "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        for line, kind, what, code in blocks_of(page.read_text(encoding="utf-8")):
            if kind == "not run":
                counts["not run"] += 1
                continue
            server = start_server(what, folder, environment, port) if kind == "server" else None
            result, said = run_block(code.replace("8080", str(port)), folder, environment)
            if server is not None:
                server.kill()
                server.wait()
            counts["run"] += 1
            if result != 0:
                counts["failed"] += 1
                print(f"{page.name}:{line}: exit code {result}\n{code}\n{said}")
    return counts


def main():
    program, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        print(f"skipped: expected {', '.join(missing)}, found none")
        sys.exit(77)
    pages = [pathlib.Path(page) for page in sys.argv[3:]] or \
        [source / "README.md", *sorted((source / "docs").glob("*.md"))]
    total = {"run": 0, "not run": 0, "failed": 0}
    for page in pages:
        for name, count in run_page(page, source, program).items():
            total[name] += count
    print(f"{total['run']} blocks run, {total['not run']} marked as not to be run, "
          f"{total['failed']} failed")
    # A mark that nobody sees any more would let every block through.
    sys.exit(1 if total["failed"] or total["run"] == 0 else 0)


if __name__ == "__main__":
    main()
