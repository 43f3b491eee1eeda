#!/usr/bin/env python3
"""What bench/many_bench measures, of llama.cpp's server: many conversations at once behind one
system prompt, each with a slot of its own. Needs the package xllamacpp, which holds the server.

  bench/many_peer.py MODEL [CONVERSATIONS [TURNS [SYSTEM_TOKENS [THREADS]]]]

Prompts are token ids, so that both sides compute the same number of tokens. Prints tokens per
second, times to the first token, how many tokens the server says it computed, and resident memory.
"""
import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.parse

import xllamacpp

MESSAGE_TOKENS, ANSWER_TOKENS = 40, 64


def ask(url, prompt, slot):
    """One answer: its tokens, seconds to the first one, and how many prompt tokens were computed."""
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=3600)
    body = {"prompt": prompt, "n_predict": ANSWER_TOKENS, "stream": True, "cache_prompt": True,
            "ignore_eos": True, "return_tokens": True, "id_slot": slot, "seed": 1}
    begin = time.monotonic()
    connection.request("POST", "/completion", json.dumps(body),
                       {"Content-Type": "application/json"})
    tokens, first, computed = [], None, 0
    for line in connection.getresponse():
        if not line.startswith(b"data: "):
            if b"error" in line:
                raise RuntimeError(line.decode())
            continue
        event = json.loads(line[6:])
        if event.get("tokens"):
            first = first or time.monotonic() - begin
            tokens += event["tokens"]
        if event.get("stop"):
            computed = event["timings"]["prompt_n"]
    connection.close()
    return tokens, first, computed


class Conversation(threading.Thread):
    def __init__(self, url, slot, system, turns, vocabulary):
        super().__init__()
        self.url, self.slot, self.turns, self.vocabulary = url, slot, turns, vocabulary
        self.history, self.random = list(system), random.Random(slot)
        self.waits, self.answered, self.computed, self.failure = [], 0, 0, None

    def run(self):
        try:
            for _ in range(self.turns):
                self.history += [self.random.randrange(self.vocabulary)
                                 for _ in range(MESSAGE_TOKENS)]
                tokens, first, computed = ask(self.url, self.history, self.slot)
                self.history += tokens
                self.waits.append(first)
                self.answered += len(tokens)
                self.computed += computed + len(tokens)
        except (OSError, RuntimeError, KeyError, ValueError) as failure:
            self.failure = failure


def percentiles(values):
    values = sorted(values)
    at = [values[int(part * (len(values) - 1))] * 1e3 for part in (0.5, 0.95)] if values else [0, 0]
    return f"median {at[0]:.0f} ms, 95 % within {at[1]:.0f} ms"


def resident_mib():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    numbers = [int(word) for word in sys.argv[2:]] + [4, 8, 2048, os.cpu_count()][len(sys.argv) - 2:]
    count, turns, system_tokens, threads = numbers
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_parallel = count
    params.n_ctx = count * (system_tokens + turns * (MESSAGE_TOKENS + ANSWER_TOKENS) + 256)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.port = 0
    server = xllamacpp.Server(params)
    url = urllib.parse.urlparse(server.listening_address)
    vocabulary = 32000
    system = [random.Random(0).randrange(vocabulary) for _ in range(system_tokens)]
    conversations = [Conversation(url, slot, system, turns, vocabulary) for slot in range(count)]
    begin = time.monotonic()
    for conversation in conversations:
        conversation.start()
    for conversation in conversations:
        conversation.join()
        if conversation.failure:
            raise SystemExit(f"many_peer: {conversation.failure}")
    seconds = time.monotonic() - begin
    answered = sum(conversation.answered for conversation in conversations)
    ideal = system_tokens + count * turns * (MESSAGE_TOKENS + ANSWER_TOKENS)
    print(f"{count} conversations of {turns} turns: {answered / seconds:.1f} tokens/s of answers "
          f"in {seconds:.1f} s")
    print("first token of a first turn:", percentiles([c.waits[0] for c in conversations]))
    print("first token of a next turn:",
          percentiles([wait for c in conversations for wait in c.waits[1:]]))
    print(f"tokens computed: {sum(c.computed for c in conversations)} (each once: {ideal})")
    print(f"memory: {resident_mib():.0f} MiB resident")


if __name__ == "__main__":
    main()
