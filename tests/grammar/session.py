"""A matcher in a program of its own (session.cpp), for scripts: vocabulary, masks, steps."""
import random
import subprocess


class Refused(Exception):
    """The program's error: a code and a message."""


class Session:
    def __init__(self, program, model):
        self.process = subprocess.Popen([program, model], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pieces, self.kinds = [], []
        for _ in range(int(self.ask("vocabulary")[0])):
            # An empty piece leaves only its kind.
            *piece, kind = self.process.stdout.readline().split()
            self.pieces.append(bytes.fromhex(piece[0]) if piece else b"")
            self.kinds.append(kind)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ok":
            text = bytes.fromhex(answer[2]).decode(errors="replace") if len(answer) > 2 else ""
            raise Refused(f"{answer[1] if len(answer) > 1 else 'no answer'}: {text}")
        return answer[1:]

    def compile(self, kind, source):
        self.ask(f"compile {kind} {source.encode().hex()}")

    def mask(self):
        """The allowed tokens as bytes, the lowest bit first."""
        return bytes.fromhex(self.ask("mask")[0])

    def take(self, token):
        """Whether the text is complete, and whether nothing can follow."""
        complete, finished = self.ask(f"take {token}")
        return complete == "1", finished == "1"

    def allowed(self, mask):
        return [token for index, byte in enumerate(mask) if byte
                for token in range(8 * index, 8 * index + 8) if byte >> (token & 7) & 1]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


CLOSING = set(b'"]},:0123456789')
LAST = [b'"', b"}", b"]", b"0", b"1", b"2", b"5", b"9", b":", b","]


def choose(session, tokens, hurry, rng=random):
    """A random token; in a hurry one that leads to an end: quotes, closing brackets, digits."""
    texts = [token for token in tokens if session.kinds[token] != "e"]
    if not texts:
        return tokens[0]
    if hurry:
        ends = [token for token in tokens if session.kinds[token] == "e"]
        by_piece = {session.pieces[token]: token for token in texts}
        ends += [by_piece[piece] for piece in LAST if piece in by_piece]
        if ends:
            return ends[0]
    if rng.random() < 0.4:
        closing = [token for token in texts if set(session.pieces[token]) <= CLOSING]
        if closing:
            return rng.choice(closing)
    return rng.choice(texts)
