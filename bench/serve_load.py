#!/usr/bin/env python3
"""A server under load: many connections that ask, stop reading, go away in the midst or ask for
something small, while another one measures how long /health takes.

  bench/serve_load.py PROGRAM [--model FILE] [--connections 200] [--seconds 600] [--seed 1]

Starts PROGRAM serve, on the built-in model unless told otherwise. Prints every minute, and at the
end: replies by status, times of /health, the program's resident memory, and what it still answers
and holds a moment after the last client has gone. Exit code 1 if a reply was neither what was asked
for nor a refusal for too many requests, or if an answer was left behind.
"""
import argparse
import asyncio
import collections
import json
import random
import re
import signal
import subprocess
import sys
import time

SYSTEM = ["You are a helpful assistant.", "Answer in one word.", "Du antwortest auf Deutsch."]
QUESTIONS = ["What is the capital of France?", "Tell me a story of a fox.", "Why?", "x" * 400]
BUSY = {429, 503}


def quantile(values, part):
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else 0.0


class Reply:
    """The head of a reply, and its body as it comes."""

    def __init__(self, reader):
        self.reader = reader

    async def begin(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        self.status = int(head.split(" ", 2)[1])
        length = re.search(r"\r\ncontent-length: (\d+)", head)
        self.left = int(length[1]) if length else None
        return self

    async def piece(self):
        """A chunk, or the whole body where it has a length; empty at the end."""
        if self.left is not None:
            count, self.left = self.left, 0
            return await self.reader.readexactly(count) if count else b""
        count = int(await self.reader.readuntil(b"\r\n"), 16)
        body = await self.reader.readexactly(count + 2)
        return body[:-2]

    async def body(self):
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)


class Load:
    def __init__(self, port, seed, seconds):
        self.port, self.random = port, random.Random(seed)
        self.end = time.monotonic() + seconds
        self.replies, self.errors = collections.Counter(), collections.Counter()
        self.health = []

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    @staticmethod
    def write(writer, path, body=None):
        text = "" if body is None else json.dumps(body)
        writer.write((f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                      + text).encode())

    def chat(self, is_stream):
        pick = self.random.choice
        return {"messages": [{"role": "system", "content": pick(SYSTEM)},
                             {"role": "user", "content": pick(QUESTIONS)}],
                "max_tokens": self.random.randint(1, 32), "stream": is_stream,
                "temperature": pick([0, 1]), "seed": self.random.randrange(100)}

    def note(self, kind, status):
        self.replies[kind, status] += 1
        if status != 200 and status not in BUSY:
            self.errors[f"{kind}: status {status}"] += 1

    async def whole(self, reader, writer, kind, path, body=None):
        self.write(writer, path, body)
        reply = await Reply(reader).begin()
        text = await reply.body()
        self.note(kind, reply.status)
        if kind == "stream" and reply.status == 200 and b"data: [DONE]" not in text:
            self.errors["stream: it ended without its end"] += 1

    async def leave(self, reader, writer):
        """Goes away before the reply, or after some of it."""
        self.write(writer, "/v1/chat/completions", self.chat(True) | {"max_tokens": 2000})
        if self.random.random() < 0.5:
            reply = await Reply(reader).begin()
            self.note("left", reply.status)
            for _ in range(self.random.randint(0, 8)):
                if not await reply.piece():
                    return
        writer.transport.abort()

    async def client(self):
        reader = writer = None
        while time.monotonic() < self.end:
            try:
                if writer is None or writer.is_closing():
                    reader, writer = await self.connect()
                kind = self.random.random()
                if kind < 0.45:
                    await self.whole(reader, writer, "stream", "/v1/chat/completions",
                                     self.chat(True))
                elif kind < 0.6:
                    await self.whole(reader, writer, "chat", "/v1/chat/completions",
                                     self.chat(False))
                elif kind < 0.85:
                    await self.leave(reader, writer)
                elif kind < 0.95:
                    await self.whole(reader, writer, "tokens", "/tokenize",
                                     {"content": self.random.choice(QUESTIONS)})
                else:
                    await asyncio.sleep(self.random.random())
            except (OSError, asyncio.IncompleteReadError) as failure:
                self.errors[f"connection: {type(failure).__name__}"] += 1
                writer = None
        if writer is not None:
            writer.close()

    async def probe(self):
        reader, writer = await self.connect()
        while time.monotonic() < self.end:
            begin = time.monotonic()
            await self.whole(reader, writer, "health", "/health")
            self.health.append(time.monotonic() - begin)
            await asyncio.sleep(0.05)
        writer.close()

    async def get(self, path):
        reader, writer = await self.connect()
        self.write(writer, path)
        text = await (await Reply(reader).begin()).body()
        writer.close()
        return json.loads(text)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


async def run(load, pid, connections):
    begin, resident = time.monotonic(), []

    async def tell():
        while time.monotonic() < load.end:
            await asyncio.sleep(min(60, max(load.end - time.monotonic(), 0.1)))
            resident.append(resident_mib(pid))
            print(f"{time.monotonic() - begin:6.0f} s: {sum(load.replies.values())} replies, "
                  f"/health p99 {quantile(load.health, 0.99) * 1e3:.1f} ms, "
                  f"resident {resident[-1]:.0f} MiB", flush=True)

    await asyncio.gather(load.probe(), tell(), *(load.client() for _ in range(connections)))
    for (kind, status), count in sorted(load.replies.items()):
        print(f"{count:8} {kind} {status}")
    print(f"/health: p50 {quantile(load.health, 0.5) * 1e3:.1f} ms, p99 "
          f"{quantile(load.health, 0.99) * 1e3:.1f} ms, longest {max(load.health) * 1e3:.1f} ms")
    await asyncio.sleep(5)
    memory = await load.get("/v1/memory")
    engine, held = memory["engine"], memory["process"]["conversations"]
    print(f"left behind: {engine['running']} running, {engine['waiting']} waiting; conversations "
          f"{held >> 20} MiB; resident {resident_mib(pid):.0f} MiB")
    for error, count in load.errors.items():
        print(f"{count:8} ERROR {error}")
    return not load.errors and engine["running"] == engine["waiting"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--model")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    command = [options.program, "serve", "--port", "0", "--request-log", "none"]
    command += [options.model] if options.model else []
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r"http://[^:]+:(\d+)", server.stderr.readline())[1])
        load = Load(port, options.seed, options.seconds)
        is_fine = asyncio.run(run(load, server.pid, options.connections))
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    print(f"the server ended with {code}")
    return 0 if is_fine and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
