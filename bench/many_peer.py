#!/usr/bin/env python3
"""What bench/many_bench measures, of llama.cpp's server: many conversations at once behind one
system prompt, each with a slot of its own. Needs the package xllamacpp, which holds the server.

  bench/many_peer.py MODEL [CONVERSATIONS [TURNS [SYSTEM_TOKENS [THREADS [ANSWER_TOKENS
                     [THOUGHT_TOKENS]]]]]]

Prompts are token ids, so that both sides compute the same number of tokens. Prints tokens per
second, times to the first token, how many tokens the server says it computed, and resident memory.
bench/serve_peer.py measures a server that is a program.
"""
import os
import sys
import urllib.parse

import xllamacpp

from served_conversations import Measured, context_tokens


def resident_mib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    given = [int(word) for word in sys.argv[2:]]
    defaults = [4, 8, 2048, os.cpu_count(), 64, 0]
    count, turns, system_tokens, threads, answer_tokens, thought = given + defaults[len(given):]
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_parallel = count
    params.n_ctx = count * context_tokens(system_tokens, turns, answer_tokens)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.port = 0
    server = xllamacpp.Server(params)
    url = urllib.parse.urlparse(server.listening_address)
    try:
        Measured(url, count, turns, system_tokens, answer_tokens, thought).print()
    except RuntimeError as failure:
        raise SystemExit(f"many_peer: {failure}") from failure
    print(f"memory: {resident_mib():.0f} MiB resident")


if __name__ == "__main__":
    main()
