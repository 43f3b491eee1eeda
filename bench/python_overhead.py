#!/usr/bin/env python3
"""What the Python package adds to a token, in microseconds, beside the bare calls of the C
interface through ctypes; and what a snapshot costs.

  CAIRN_LIBRARY=build/libcairn.so PYTHONPATH=python bench/python_overhead.py assets/nano.gguf
  CAIRN_LIBRARY=build/tests/libcairn_with_fake.so PYTHONPATH=python \
      bench/python_overhead.py assets/nano.gguf fake

With the fake runtime, which computes next to nothing, all of a token's time is the interface's, the
sampler's and Python's.
"""
import asyncio
import ctypes
import statistics
import sys
import time

import cairn
from cairn import _c

TOKENS, ROUNDS = 200, 7


def per_token(seconds):
    return 1e6 * seconds / TOKENS


def prepared(session, mark):
    session.rewind(mark)
    return time.perf_counter()


def calls(session, mark, starts):
    event = _c.EventView(struct_size=ctypes.sizeof(_c.EventView))
    error = _c.Error(struct_size=ctypes.sizeof(_c.Error))
    event_at, error_at = ctypes.byref(event), ctypes.byref(error)
    handle, call = session._open_handle(), _c.lib.cairn_next
    begin = prepared(session, mark)
    if starts:
        _c.lib.cairn_start(handle, error_at)
    while call(handle, event_at, error_at) == _c.OK:
        pass
    return per_token(time.perf_counter() - begin)


def bare(session, mark):
    return calls(session, mark, starts=False)


def background(session, mark):
    return calls(session, mark, starts=True)


def events(session, mark):
    begin = prepared(session, mark)
    for _ in session.generate():
        pass
    return per_token(time.perf_counter() - begin)


def asynchronous(session, mark):
    async def work():
        begin = prepared(session, mark)
        async for _ in session.agenerate():
            pass
        return per_token(time.perf_counter() - begin)

    return asyncio.run(work())


def rows(session, mark):
    begin = prepared(session, mark)
    for _ in session.generate():
        session.logits().numpy()
    return per_token(time.perf_counter() - begin)


def snapshots(session, _):
    begin = time.perf_counter()
    for _ in range(TOKENS):
        session.snapshot().close()
    return per_token(time.perf_counter() - begin)


def main(path, backend=None):
    ways = [bare, events, background, asynchronous, rows, snapshots]
    with cairn.Model(path) as model, cairn.Engine(
            model, memory=None if backend else "256MiB", threads=1, backend=backend) as engine:
        session = engine.session(sampling=cairn.Sampling(
            temperature=0, ignore_end=True, max_tokens=TOKENS))
        session.append("Hello")
        mark = session.snapshot()
        found = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way in ways:
                found[way].append(way(session, mark))
        for way in ways:
            times = found[way]
            print(f"{way.__name__:13} median {statistics.median(times):8.1f} us, "
                  f"best {min(times):8.1f} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
