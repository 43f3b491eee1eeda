"""For benchmarks of servers: conversations of token ids over POST /completion, which cairn's server
and llama.cpp's have both, and what their clients have to wait for."""
import http.client
import json
import random
import threading
import time

MESSAGE_TOKENS = 40
# All prompts are made of the first so many ids, which the models of these benchmarks have.
VOCABULARY = 32000
# Of the vocabularies of `cairn synth`, the bytes that are no characters. They are not chosen:
# llama.cpp's server does not tell tokens that end within a character.
NO_CHARACTERS = range(2 + 0x80, 2 + 0x100)


def random_tokens(source, count):
    return [source.randrange(VOCABULARY) for _ in range(count)]


def ask(url, prompt, slot, answer_tokens):
    """One answer: its tokens, seconds to the first one, the count of computed prompt tokens."""
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=3600)
    body = {"prompt": prompt, "n_predict": answer_tokens, "stream": True, "cache_prompt": True,
            "ignore_eos": True, "return_tokens": True, "id_slot": slot, "seed": 1,
            "logit_bias": [[token, False] for token in NO_CHARACTERS]}
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
    if len(tokens) != answer_tokens:
        raise RuntimeError(f"expected {answer_tokens} tokens, found {len(tokens)}")
    return tokens, first, computed


class Conversation(threading.Thread):
    """Each next prompt has the answers without their first `thought` tokens, as templates leave out
    reasoning."""

    def __init__(self, url, slot, system, turns, answer_tokens, thought):
        super().__init__()
        self.thought = thought
        self.url, self.slot, self.turns, self.answer_tokens = url, slot, turns, answer_tokens
        self.history, self.random = list(system), random.Random(slot)
        self.waits, self.answered, self.computed, self.failure = [], 0, 0, None

    def run(self):
        try:
            for _ in range(self.turns):
                self.history += random_tokens(self.random, MESSAGE_TOKENS)
                tokens, first, computed = ask(self.url, self.history, self.slot,
                                              self.answer_tokens)
                self.history += tokens[self.thought:]
                self.waits.append(first)
                self.answered += len(tokens)
                self.computed += computed + len(tokens) - 1  # The last one is read later.
        except (OSError, RuntimeError, KeyError, ValueError, http.client.HTTPException) as failure:
            self.failure = failure


def percentiles(values):
    """Of seconds, as text."""
    values = sorted(values)
    at = [values[int(part * (len(values) - 1))] * 1e3 for part in (0.5, 0.95)] if values else [0, 0]
    return f"median {at[0]:.0f} ms, 95 % within {at[1]:.0f} ms"


def context_tokens(system_tokens, turns, answer_tokens):
    """That a conversation needs, and some more."""
    return system_tokens + turns * (MESSAGE_TOKENS + answer_tokens) + 256


class Measured:
    """`count` conversations behind one system prompt, all at once, to their end."""

    def __init__(self, url, count, turns, system_tokens, answer_tokens, thought=0):
        system = random_tokens(random.Random(0), system_tokens)
        self.conversations = [Conversation(url, slot, system, turns, answer_tokens, thought)
                              for slot in range(count)]
        self.shape = f"{count} conversations of {turns} turns"
        # What stands behind a thought moves, and is computed once more; an answer's last token is
        # only computed then.
        moved = (turns - 1) * (answer_tokens - thought - 1) if thought else 0
        self.ideal = system_tokens + count * (turns * (MESSAGE_TOKENS + answer_tokens) - 1 + moved)
        begin = time.monotonic()
        for conversation in self.conversations:
            conversation.start()
        for conversation in self.conversations:
            conversation.join()
            if conversation.failure:
                raise RuntimeError(str(conversation.failure))
        self.seconds = time.monotonic() - begin

    @property
    def answered(self):
        return sum(one.answered for one in self.conversations)

    @property
    def computed(self):
        return sum(one.computed for one in self.conversations)

    @property
    def first_waits(self):
        return [one.waits[0] for one in self.conversations]

    @property
    def next_waits(self):
        return [wait for one in self.conversations for wait in one.waits[1:]]

    def print(self):
        print(f"{self.shape}: {self.answered / self.seconds:.1f} tokens/s of answers in "
              f"{self.seconds:.1f} s")
        print("first token of a first turn:", percentiles(self.first_waits))
        print("first token of a next turn:", percentiles(self.next_waits))
        print(f"tokens computed: {self.computed} (at least: {self.ideal})")
