"""Attack 41: a server whose allocations are refused, each of those of a chat in its turn: the
request is answered or refused, at once, and the next one is answered with the same bytes as before.

  tests/serve/refused_memory.py CAIRN FAILING_MALLOC"""
import contextlib
import http.client
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import urllib.parse

import serving

ARCHITECTURES = ["gemma3", "mamba2", "granitehybrid"]  # Beside the built-in model.
PATIENCE_SECONDS = 20
CONTROL = struct.Struct("<qqq")  # As tests/serve/failing_malloc.c has it.


class Refusals:
    """Which allocations of a process are refused."""

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(mmap.PAGESIZE)
        self.memory = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)
        return self

    def __exit__(self, *_):
        self.memory.close()
        self.file.close()

    def refuse(self, number, count=1):
        """From the allocation `number` on, counted from now; 0: none."""
        CONTROL.pack_into(self.memory, 0, 0, number, count)

    def allocations(self):
        return CONTROL.unpack_from(self.memory)[0]


@contextlib.contextmanager
def served(program, library, arguments, refusals):
    os.environ.update(LD_PRELOAD=library, CAIRN_FAILING_MALLOC=refusals.file.name)
    try:
        server = serving.Server(program, *arguments)
    finally:
        del os.environ["LD_PRELOAD"]
    with server:
        yield server


def ask(server, is_chat):
    """The bytes of an answer but for its id and time; None where the connection was cut."""
    body = {"temperature": 0, "max_tokens": 4, "stream": is_chat}
    if is_chat:
        body["messages"] = [{"role": "user", "content": serving.QUESTION}]
    else:
        body["prompt"] = [5, 6, 7, 8, 9]
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(server.url).netloc,
                                            timeout=PATIENCE_SECONDS)
    try:
        connection.request("POST", "/v1/chat/completions" if is_chat else "/v1/completions",
                           json.dumps(body), {"content-type": "application/json",
                                              "authorization": f"Bearer {serving.KEY}"})
        reply = connection.getresponse()
        return reply.status, text_of(reply.read(), is_chat)
    except TimeoutError:
        raise
    except (http.client.HTTPException, OSError, ValueError):
        return None
    finally:
        connection.close()


def text_of(data, is_chat):
    """What a model has said; of a refusal or a stream that breaks off, nothing."""
    if not is_chat:
        return json.loads(data).get("choices")
    lines = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
    if not lines or lines[-1] != "[DONE]":
        return None
    return [json.loads(line).get("choices") for line in lines[:-1]]


def check(server, refusals, name, is_chat):
    expected = ask(server, is_chat)
    assert expected[0] == 200, (name, expected)
    for _ in range(3):
        refusals.refuse(0)
        assert ask(server, is_chat) == expected, name
    total = refusals.allocations()
    answered = refused = cut = 0
    for number in range(1, total + 1):
        refusals.refuse(number)
        got = ask(server, is_chat)
        refusals.refuse(0)
        assert server.process.poll() is None, f"{name}: ended behind allocation {number}"
        if got == expected:
            answered += 1
        elif got is None or got[0] == 200:
            cut += 1
        else:
            assert got[0] in (429, 500, 503), (name, number, got)
            refused += 1
        assert ask(server, is_chat) == expected, f"{name}: wrong behind allocation {number}"
    print(f"{name}: {total} allocations a request; of those that were refused, {answered} changed "
          f"nothing, {refused} were told to the client, {cut} cut the reply")


def main():
    program, library = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        models = [("the built-in model", [])]
        for name in ARCHITECTURES:
            path = os.path.join(folder, name + ".gguf")
            subprocess.run([program, "synth", "--like", name, "-o", path], check=True)
            models.append((name, [path]))
        for name, arguments in models:
            with Refusals() as refusals, served(program, library, arguments, refusals) as server:
                check(server, refusals, name, not arguments)


if __name__ == "__main__":
    main()
