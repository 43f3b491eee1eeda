"""System calls that fail, each of those of loading, answering, storing and serving in its turn,
once and from there on: the program answers with the same bytes or says what is wrong and ends; a
server is there afterwards; what was stored is whole.

  tests/cli/failing_calls.py CAIRN FAILING_CALLS"""
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

CONTROL = struct.Struct("<qqq")  # As tests/cli/failing_calls.c has it.
QUESTION = "What is the capital of France?"
MODEL = Path(__file__).resolve().parents[2] / "assets/nano.gguf"
PATIENCE_SECONDS = 120
FOREVER = 1 << 40
SERVED_CALLS = 60  # Of a request, at most.


class Faults:
    def __init__(self, folder):
        self.path = Path(folder) / "control"
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def choose(self, number, count=1):
        """From the call `number` on, counted from now; 0: none."""
        CONTROL.pack_into(self.memory, 0, 0, number, count)

    def calls(self):
        return CONTROL.unpack_from(self.memory)[0]


def environment(library, faults):
    return {**os.environ, "LD_PRELOAD": library, "CAIRN_FAILING_CALLS": str(faults.path)}


def check_run(program, library, folder):
    """Loads, answers, stores and writes a receipt, for each call and both kinds of faults."""
    faults = Faults(folder)
    store, receipt = folder / "store", folder / "receipt.json"
    command = [program, "run", MODEL, "-p", QUESTION, "--temp", "0", "--cache-dir", store,
               "--receipt", receipt, "-t", "1"]

    def answer(number, count=1):
        faults.choose(number, count)
        return subprocess.run(command, env=environment(library, faults), capture_output=True,
                              timeout=PATIENCE_SECONDS)

    expected = answer(0)
    assert expected.returncode == 0, expected.stderr
    answered = 0
    for count in (1, FOREVER):
        number = 1
        while True:
            done = answer(number, count)
            where = f"call {number} of {faults.calls()}, {count} fail: {done}"
            assert done.returncode in (0, 1, 2), where
            if done.returncode == 0:
                assert done.stdout == expected.stdout, where
                answered += 1
            else:
                assert done.stderr.startswith(b"cairn: ") or b"\ncairn: " in done.stderr, where
            assert b"terminate" not in done.stderr, where
            if faults.calls() < number:
                break
            number += 1
    print(f"run: {number - 1} calls, each failed once and for ever; {answered} answers")
    again = answer(0)
    assert again.returncode == 0 and again.stdout == expected.stdout, again
    found = subprocess.run([program, "store", "verify", store], capture_output=True, text=True)
    assert found.returncode == 0, found


def ask(port):
    """The text of an answer, or None where there is none."""
    body = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions",
                                     json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]
    except (OSError, ValueError, urllib.error.URLError):
        return None


def check_serve(program, library, folder):
    """Each of the first calls of a request fails; the next one is answered."""
    faults = Faults(folder)
    faults.choose(0)
    server = subprocess.Popen([program, "serve", MODEL, "--port", "0", "--cache-dir",
                               folder / "served", "-t", "1", "--request-log", "none"],
                              env=environment(library, faults), stderr=subprocess.PIPE, text=True)
    try:
        line = server.stderr.readline()
        while "http://127.0.0.1:" not in line:
            assert line, "the server ended"
            line = server.stderr.readline()
        port = int(line.rsplit(":", 1)[1])
        expected = ask(port)
        assert expected
        refused = 0
        for number in range(1, SERVED_CALLS + 1):
            faults.choose(number)
            told = ask(port)
            assert told in (None, expected), told
            refused += told is None
            faults.choose(0)
            assert ask(port) == expected, f"behind call {number}"
            assert server.poll() is None
        print(f"serve: {SERVED_CALLS} calls failed, {refused} requests ended without an answer")
    finally:
        server.terminate()
        code = server.wait(PATIENCE_SECONDS)
    assert code == 0, code


def main():
    program, library = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        check_run(program, library, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_serve(program, library, Path(folder))


if __name__ == "__main__":
    main()
