"""The process in which another program's engine computes for cairn: reads requests from a socket,
one at a time, and answers each. Numbers in frames are little-endian; logits and the word that
cancels lie in memory that both share. Ends when cairn does. Run by `python3 -c`, with
recorded.py and the file of one runtime behind it (src/runtimes/worker/worker_link.h)."""
import sys

# Modules come from where they are installed, never from the folder that cairn was started in.
sys.path[:] = [path for path in sys.path if path]

import faulthandler
import importlib.metadata
import importlib.util
import json
import mmap
import os
import select
import signal
import socket
import struct
import threading

LINK, SHARED, WEIGHTS = 3, 4, 5  # Descriptors that cairn has left open.
CHECK, LOAD, OPEN, CLOSE, APPEND, REWIND, SNAPSHOT, RESTORE, DROP = range(9)
DONE, FAILED, CANCELLED, ALIVE = range(4)
HEAD = struct.Struct("<IIQQ")  # Bytes behind it, kind, number of the request, session.
LOGITS_OFFSET = 64
# A chunk is read in parts from its beginning, so that equal chunks have equal parts; between them
# it can be cancelled.
PART_TOKENS = 64


class Cancelled(Exception):
    pass


class Missing(Exception):
    pass


# What the engine holds is not known any more: the process ends behind the answer.
class Broken(Exception):
    pass


class Link:
    def __init__(self):
        self.socket = socket.socket(fileno=LINK)
        self.sequence = 0
        self.limit_seconds = 0
        self.words = self.logits = None

    def receive(self, count):
        pieces = []
        while count > 0:
            piece = self.socket.recv(min(count, 1 << 20))
            if not piece:
                os._exit(0)
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def send(self, status, payload=b""):
        self.socket.sendall(HEAD.pack(len(payload), status, self.sequence, 0) + payload)

    # Tells cairn that a part is done, so that its limit of time is one for the next part.
    def say_alive(self):
        self.send(ALIVE)
        self.watch_time()

    # Should even Python hang, and cairn be gone: says where, and ends.
    def watch_time(self):
        if self.limit_seconds > 0:
            faulthandler.dump_traceback_later(self.limit_seconds, exit=True)

    def map_shared(self, vocabulary_count):
        size = LOGITS_OFFSET + 4 * vocabulary_count
        shared = memoryview(mmap.mmap(SHARED, size))
        os.close(SHARED)
        self.words = shared[:LOGITS_OFFSET].cast("I")
        self.logits = shared[LOGITS_OFFSET:].cast("f")

    def check_cancelled(self):
        if self.words[0] == self.sequence & 0xFFFFFFFF:
            raise Cancelled()


# A thread that ends the process with the one at the other side, whatever is computed.
def end_with_host(link):
    peer = link.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    peer = struct.unpack("iII", peer)[0]
    poll = select.poll()
    poll.register(link.socket, select.POLLRDHUP)
    try:
        poll.register(os.pidfd_open(peer), select.POLLIN)
    except OSError:
        os._exit(0)
    poll.poll()
    os._exit(0)


class Worker:
    """Sessions and snapshots by the numbers that cairn gives them."""

    def __init__(self, runtime, link):
        self.runtime, self.link = runtime, link
        self.sessions, self.states = {}, {}

    def check(self, _session, _payload):
        for module, package in self.runtime.modules:
            if importlib.util.find_spec(module) is None:
                install = f"{sys.executable} -m pip install {self.runtime.install}"
                raise Missing(f"no module named {module}; {install}")
        return " ".join(
            f"{package} {importlib.metadata.version(package)}"
            for _, package in self.runtime.modules
        ).encode()

    def load(self, _session, payload):
        description = json.loads(payload)
        self.link.limit_seconds = description["limit_seconds"]
        self.link.watch_time()
        self.link.map_shared(description["vocabulary"])
        recording = Recording(description)
        self.runtime.load(recording, description["threads"], self.link)
        self.recording = recording
        recording.bytes = None  # They are the runtime's now.
        os.close(WEIGHTS)
        # What cannot compute one token is said now.
        session = self.runtime.open()
        self.read(session, [0])
        return b""

    def read(self, session, tokens):
        for first in range(0, len(tokens), PART_TOKENS):
            if first > 0:
                self.link.say_alive()
            self.link.check_cancelled()
            part = tokens[first : first + PART_TOKENS]
            row = session.append(self.recording.inputs(part, session.length))
            session.length += len(part)
        return row

    def open(self, session, _payload):
        self.sessions[session] = self.runtime.open()
        return b""

    def close(self, session, _payload):
        del self.sessions[session]
        return b""

    def append(self, session, payload):
        session = self.sessions[session]
        tokens = list(memoryview(payload).cast("i"))
        before = session.length
        try:
            row = self.read(session, tokens)
        except Broken:
            raise
        except BaseException:
            session.cut(before)
            raise
        self.link.logits[:] = memoryview(row).cast("B").cast("f")
        return b""

    def rewind(self, session, payload):
        self.sessions[session].cut(struct.unpack("<Q", payload)[0])
        return b""

    def snapshot(self, session, payload):
        state, size = self.sessions[session].state()
        self.states[struct.unpack("<Q", payload)[0]] = self.sessions[session].length, state
        return struct.pack("<Q", size)

    def restore(self, session, payload):
        length, state = self.states[struct.unpack("<Q", payload)[0]]
        self.sessions[session].restore(state)
        self.sessions[session].length = length
        return b""

    def drop(self, _session, payload):
        del self.states[struct.unpack("<Q", payload)[0]]
        return b""


def serve(runtime):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = Link()
    threading.Thread(target=end_with_host, args=(link,), daemon=True).start()
    worker = Worker(runtime, link)
    requests = [worker.check, worker.load, worker.open, worker.close, worker.append, worker.rewind,
                worker.snapshot, worker.restore, worker.drop]
    while True:
        size, kind, link.sequence, session = HEAD.unpack(link.receive(HEAD.size))
        payload = link.receive(size)
        link.watch_time()
        is_broken = False
        try:
            status, answer = DONE, requests[kind](session, payload)
        except Cancelled:
            status, answer = CANCELLED, b""
        except Missing as error:
            status, answer = FAILED, str(error).encode()
        except Exception as error:
            status, answer = FAILED, f"{type(error).__name__}: {error}".encode()[:1024]
            is_broken = isinstance(error, Broken)
        faulthandler.cancel_dump_traceback_later()
        link.send(status, answer)
        if is_broken:
            os._exit(1)
