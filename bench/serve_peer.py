#!/usr/bin/env python3
"""What bench/many_bench measures, over HTTP: cairn's server beside llama.cpp's on the same files,
and what cairn's costs over the engine alone.

  bench/serve_peer.py CAIRN [--peer LLAMA_SERVER] [MODEL ...] [--conversations 4] [--turns 4]
                      [--system 1024] [--answer 48] [--thought 0] [--threads N] [--rounds 1]
                      [--many-bench FILE]

Each MODEL: both servers in turn, conversations at once behind one system prompt (token ids, so that
both compute the same); with --rounds N so often, each after the other. The first --thought tokens
of an answer are not in the prompts that follow, as templates leave out reasoning. Then, with
--many-bench (the program), one stream of the built-in model on one thread, in process and over
HTTP: the processor time of each, by token, and how fast tokens come. CAIRN and LLAMA_SERVER are
programs. Exit code 1 where the overhead of a token is above 50 us.
"""
import argparse
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from served_conversations import (MESSAGE_TOKENS, Measured, ask, context_tokens, percentiles,
                                  random_tokens)

OVERHEAD_US_MAX = 50
STREAM_TOKENS, STREAM_PROMPT = 3000, 64


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A program that answers at an address, and what the system says of its process."""

    def __init__(self, words, port):
        self.url = urllib.parse.urlparse(f"http://127.0.0.1:{port}")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self.process.wait()
                raise RuntimeError(f"{words[0]} does not serve it")
            time.sleep(0.05)

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.url.geturl() + "/health", timeout=10) as reply:
                return reply.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def processor_seconds(self):
        """Of the threads that there are: neither server's end while it runs."""
        nanoseconds = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            path = f"/proc/{self.process.pid}/task/{thread}/schedstat"
            with open(path, encoding="ascii") as file:
                nanoseconds += int(file.read().split()[0])
        return nanoseconds / 1e9

    def resident_mib(self):
        """Now, and at most so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            text = file.read()
        return [int(re.search(name + r":\s+(\d+)", text)[1]) / 1024 for name in ("VmRSS", "VmHWM")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
        self.process.kill()
        self.process.wait()


def cairn(options, model, *more):
    port = free_port()
    words = [options.cairn, "serve", *([model] if model else []), "--port", str(port),
             "--request-log", "none", "--threads", str(options.threads), *more]
    return Server(words, port)


def peer(options, model, context):
    port = free_port()
    return Server([options.peer, "-m", model, "--port", str(port), "--threads",
                   str(options.threads), "--threads-batch", str(options.threads), "--parallel",
                   str(options.conversations), "-c", str(options.conversations * context),
                   "--no-webui"], port)


def measure(name, server, options):
    with server:
        before = server.processor_seconds()
        told = Measured(server.url, options.conversations, options.turns, options.system,
                        options.answer, options.thought)
        spent = server.processor_seconds() - before
        now, most = server.resident_mib()
    print(f"  {name:6} {told.answered / told.seconds:7.1f} tokens/s  first turn "
          f"{percentiles(told.first_waits)}; next {percentiles(told.next_waits)}; computed "
          f"{told.computed} (at least: {told.ideal}); {spent:.1f} s of processors; resident "
          f"{now:.0f} MiB, at most {most:.0f}", flush=True)


def compare(options):
    context = context_tokens(options.system, options.turns, options.answer)
    for model in options.models:
        print(f"{os.path.basename(model)}: {options.conversations} conversations of "
              f"{options.turns} turns, {options.answer} tokens each", flush=True)
        for _ in range(options.rounds):
            measure("cairn", cairn(options, model, "--ctx-size", str(context)), options)
            if not options.peer:
                continue
            try:
                measure("peer", peer(options, model, context), options)
            except RuntimeError as failure:  # It does not know all architectures.
                print(f"  peer   {failure}", flush=True)


def alone(options):
    """Microseconds of a token in process: of processors, and from one to the next."""
    said = subprocess.run([options.many_bench, options.nano, "1", "1", str(STREAM_PROMPT), "1",
                           str(STREAM_TOKENS)], capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"([\d.]+) tokens/s", said)[1])
    return float(re.search(r"([\d.]+) us of processors", said)[1]), 1e6 / rate


def streamed(options):
    """The same over HTTP; what comes is only read here, not understood."""
    options.threads = 1
    with cairn(options, options.nano, "--context-policy", "stop") as server:
        count = STREAM_PROMPT + MESSAGE_TOKENS  # Read here too: as many as in process.
        warm, prompt = ([1 + token % 200 for token in random_tokens(random.Random(seed), count)]
                        for seed in (2, 1))
        ask(server.url, warm, 0, 200)  # So that all is in its place.
        body = json.dumps({"prompt": prompt, "n_predict": STREAM_TOKENS, "stream": True,
                           "ignore_eos": True, "return_tokens": True, "seed": 1}).encode()
        head = (f"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
                "\r\nConnection: close\r\n\r\n").encode()
        before = server.processor_seconds()
        with socket.create_connection((server.url.hostname, server.url.port)) as link:
            begin = time.monotonic()
            link.sendall(head + body)
            pieces = []
            while piece := link.recv(1 << 16):
                pieces.append(piece)
            seconds = time.monotonic() - begin
        spent = server.processor_seconds() - before
    text = b"".join(pieces)
    if f'"tokens_predicted":{STREAM_TOKENS}'.encode() not in text:
        raise RuntimeError(f"the stream has not {STREAM_TOKENS} tokens: {text[-200:]}")
    # Tokens that are there when a client is sent others go with them, which is cheaper.
    if (count := text.count(b'"stop":false')) < 0.9 * STREAM_TOKENS:
        print(f"  only {count} pieces: this machine has other things to do")
    return spent / STREAM_TOKENS * 1e6, seconds / STREAM_TOKENS * 1e6


def overhead(options):
    rounds = [(alone(options), streamed(options)) for _ in range(5)]
    for (inner, inner_wall), (outer, outer_wall) in rounds:
        print(f"  a token: {inner:.1f} us of processors in process, {outer:.1f} over HTTP "
              f"({outer - inner:+.1f}); one after {inner_wall:.1f} us, over HTTP {outer_wall:.1f} "
              f"({outer_wall - inner_wall:+.1f})")
    middle = sorted(outer - inner for (inner, _), (outer, _) in rounds)[len(rounds) // 2]
    wall = sorted(outer - inner for (_, inner), (_, outer) in rounds)[len(rounds) // 2]
    print(f"HTTP costs {middle:.1f} us of processors and {wall:.1f} us of time by token "
          f"(medians; bar: {OVERHEAD_US_MAX})")
    return max(middle, wall) <= OVERHEAD_US_MAX


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cairn")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--peer")
    for name, default in (("conversations", 4), ("turns", 4), ("system", 1024), ("answer", 48),
                          ("thought", 0), ("threads", os.cpu_count()), ("rounds", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--many-bench")
    options = parser.parse_intermixed_args()
    options.nano = os.path.join(os.path.dirname(__file__), "..", "assets", "nano.gguf")
    compare(options)
    return 0 if not options.many_bench or overhead(options) else 1


if __name__ == "__main__":
    sys.exit(main())
