#!/usr/bin/env python3
"""Writes a coding agent's conversation, made of real changes of this repository: the agent reads a
file, replaces pieces of it one by one, reads it again, and says what it did. Files come back word
for word, as they do in such conversations; code, messages of commits and their order are real, what
the agent says between them is not.

    bench/make_agent_transcript.py [TURNS] > bench/transcripts/agent.json

The output: {"turns": [{"asked": text, "answered": text}, …]}: what comes to the model, and what the
model writes then."""

import difflib
import json
import subprocess
import sys

TURNS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
LINES_MIN, LINES_MAX = 20, 110  # Of a file.
CONTEXT = 3  # Lines around a change that the agent repeats.


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout.decode()


def changes():
    """Small files and what a commit made of them, the oldest first."""
    for commit in git("rev-list", "--reverse", "--no-merges", "HEAD", "--", "src").split():
        changed = git("diff-tree", "-r", "--no-commit-id", "--diff-filter=M", commit)
        for line in changed.splitlines():
            _, _, before, after, rest = line.lstrip(":").split(" ", 4)
            path = rest.split("\t", 1)[1]
            if not path.endswith((".cpp", ".h", ".py")):
                continue
            old, new = git("cat-file", "blob", before), git("cat-file", "blob", after)
            if LINES_MIN <= old.count("\n") <= LINES_MAX and old != new:
                yield git("show", "-s", "--format=%s", commit).strip(), path, old, new


def call(name, **arguments):
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def pieces(old, new):
    """The texts that are replaced, with the lines around them, and by what."""
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield "".join(a[first[1]:last[2]]), "".join(b[first[3]:last[4]])


def conversation():
    for subject, path, old, new in changes():
        yield f"Task: {subject}. The file is {path}.", call("read_file", path=path)
        text = old
        for before, after in pieces(old, new):
            if text.count(before) != 1:
                continue
            shown = text
            yield f"<tool_response>\n{shown}</tool_response>", call(
                "replace", path=path, old_string=before, new_string=after)
            text = text.replace(before, after)
        yield "<tool_response>\nreplaced\n</tool_response>", call("run_tests", filter=path)
        yield ("<tool_response>\nall passed\n</tool_response>",
               f"{subject}: done in {path}. All tests pass.")


def main():
    turns = []
    for asked, answered in conversation():
        turns.append({"asked": asked, "answered": answered})
        if len(turns) == TURNS:
            break
    json.dump({"turns": turns}, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
