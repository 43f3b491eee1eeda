#!/usr/bin/env python3
"""What llama.cpp's own lookups gain, beside bench/draft_replay_bench. Needs the package xllamacpp,
which holds its server.

  bench/draft_peer.py MODEL TRANSCRIPT [TOKENS [PROMPT_TOKENS [THREADS [ROUNDS]]]]

Its server cannot be told which tokens to choose. So the prompt is the transcript's text (a token
for each word, in the order of their first occurrence: any model has such ids), and the answer is
what the model says at temperature 0: models with made-up weights soon repeat themselves, and then
all drafts are right, as those of `draft_replay_bench ... copy` are. Plain and with each kind of
lookup, by turns; tokens a second without the prompt, a median; whether the answers are the same.
"""
import json
import os
import re
import statistics
import sys
import urllib.request

import xllamacpp

KINDS = {
    "plain": "NONE",
    "ngram-simple": "NGRAM_SIMPLE",
    "ngram-map-k": "NGRAM_MAP_K",
    "ngram-mod": "NGRAM_MOD",
    "ngram-cache": "NGRAM_CACHE",
}
FIRST_ID = 100


def words_of(path):
    with open(path, encoding="utf-8") as file:
        turns = json.load(file)["turns"]
    text = "\n".join(f"{turn['asked']}\n{turn['answered']}" for turn in turns)
    return re.findall(r"\s?\w+|\s?[^\w\s]|\s", text)


def ids_of(words, count):
    known = {}
    return [known.setdefault(word, FIRST_ID + len(known)) for word in words[:count]]


class Peer:
    """One server, which drafts in one way."""

    def __init__(self, model, kind, context, threads):
        params = xllamacpp.CommonParams()
        params.model.path = model
        params.n_parallel = 1
        params.n_ctx = context
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.port = 0
        name = f"COMMON_SPECULATIVE_TYPE_{KINDS[kind]}"
        params.speculative.types = [getattr(xllamacpp.common_speculative_type, name)]
        self.server = xllamacpp.Server(params)

    def answer(self, prompt, count):
        order = {"prompt": prompt, "n_predict": count, "temperature": 0, "cache_prompt": False,
                 "ignore_eos": True, "return_tokens": True}
        request = urllib.request.Request(f"{self.server.listening_address}/completion",
                                         json.dumps(order).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    model, transcript = sys.argv[1:3]
    given = [int(word) for word in sys.argv[3:]]
    defaults = [400, 400, os.cpu_count(), 3]
    count, prompt_count, threads, rounds = given + defaults[len(given):]
    prompt = ids_of(words_of(transcript), prompt_count)
    peers = {kind: Peer(model, kind, prompt_count + count + 256, threads) for kind in KINDS}
    rates = {kind: [] for kind in KINDS}
    last = {}
    for _ in range(rounds):
        for kind, peer in peers.items():
            last[kind] = peer.answer(prompt, count)
            rates[kind].append(last[kind]["timings"]["predicted_per_second"])
    plain = statistics.median(rates["plain"])
    for kind, reply in last.items():
        rate = statistics.median(rates[kind])
        timings = reply["timings"]
        drafted, right = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
        same = "" if reply["tokens"] == last["plain"]["tokens"] else "; ANOTHER ANSWER than plain"
        print(f"{kind:14} {rate:8.1f} tokens a second, {rate / plain:5.2f} x; {right} of {drafted} "
              f"drafted ones right, of {timings['predicted_n']} tokens{same}")


if __name__ == "__main__":
    main()
