"""`cairn serve` as a child process on a Unix socket, which ends with the process that started it,
and what it says of itself. Knows nothing of Ray. Thread rule: any thread."""

from __future__ import annotations

import fcntl
import glob
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ..__main__ import program

# Linux tells the program when the thread that started it ends: PR_SET_PDEATHSIG is 1. Started in a
# Python of its own, since code between fork and exec must not run Python beside other threads.
_START = (
    "import ctypes,os,signal,sys;"
    "ctypes.CDLL(None).prctl(1,signal.SIGTERM);"
    "os.getppid()==int(sys.argv[1]) or sys.exit(1);"
    "sys.argv[2] and os.sched_setaffinity(0,map(int,sys.argv[2].split(',')));"
    "os.execv(sys.argv[3],sys.argv[3:])"
)
_LINE = re.compile(r"^(cairn_\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _cpus_of(text: str) -> list[int]:
    """ "0-3,8" """
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


class NumaNode:
    """A NUMA node of this machine that no other replica has, as long as this lives.

    Raises:
        RuntimeError: all are taken.
    """

    def __init__(self, nodes: str = "/sys/devices/system/node", locks: str | None = None) -> None:
        folder = Path(locks or Path(tempfile.gettempdir()) / f"cairn-numa-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise RuntimeError(f"{folder}: expected a folder of this user's, found another's")
        allowed = os.sched_getaffinity(0)
        found = 0
        for node in sorted(glob.glob(f"{nodes}/node[0-9]*")):
            cpus = [cpu for cpu in _cpus_of(Path(node, "cpulist").read_text()) if cpu in allowed]
            if not cpus:
                continue
            found += 1
            lock: IO[str] = open(folder / Path(node).name, "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                continue
            self.cpus = cpus
            self._lock = lock
            return
        raise RuntimeError(f"expected a NUMA node without a replica, found {found} with one")

    def close(self) -> None:
        self._lock.close()


class Server:
    """Starts the server, and waits until it answers, which is when the model is loaded.

    Raises:
        RuntimeError: it ended before.
    """

    def __init__(
        self,
        model: str,
        arguments: Sequence[str] = (),
        cpus: Sequence[int] | None = None,
        name: str = "server",
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=f"cairn-{name}-")
        self._key = self._key_of(arguments)
        self.path = str(Path(self._folder.name) / "socket")
        words = [program(), "serve", *([model] if model else []), "--unix-socket", self.path]
        words += ["--trusted-proxy", "unix", "--request-log", "none", *arguments]
        start = [sys.executable, "-I", "-S", "-c", _START]
        self._words = [*start, str(os.getpid()), ",".join(map(str, cpus or ())), *words]
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Event()
        # The thread that starts it has to live as long.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._started.wait()
        while not self._answers():
            if not self.is_running():
                self._folder.cleanup()
                code = self._process.returncode if self._process else None
                raise RuntimeError(f"cairn serve: expected it to start, found exit code {code}")
            time.sleep(0.05)

    @staticmethod
    def _key_of(arguments: Sequence[str]) -> str | None:
        """What the server's metrics are asked with: an admin's key where there is one. One of its
        own would be another tenant, and change what the others have."""
        given: dict[str, str] = {}
        for word, after in zip(arguments, [*arguments[1:], ""]):
            name, equals, value = word.partition("=")
            given[name] = value if equals else after
        for option in ("--admin-key-file", "--api-key-file"):
            if option in given:
                lines = Path(given[option]).read_text().splitlines()
                keys = [line.split()[-1] for line in lines if line.strip() and line[0] != "#"]
                return keys[0] if keys else None
        return given.get("--api-key", os.environ.get("CAIRN_API_KEY"))

    def _run(self) -> None:
        try:
            self._process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL)
        finally:
            self._started.set()
        self._process.wait()

    def _get(self, path: str) -> tuple[int, str]:
        connection = _UnixConnection(self.path, timeout=5)
        try:
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode(errors="replace")
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            return self._get("/health")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """
        Raises:
            RuntimeError: it is gone, or does not answer.
        """
        if not self.is_running() or not self._answers():
            raise RuntimeError("cairn serve: expected it to answer, found that it is gone")

    def metrics(self) -> dict[str, float]:
        """Sums over all models, without labels; empty where it does not say."""
        try:
            status, text = self._get("/metrics")
        except (OSError, http.client.HTTPException):
            return {}
        sums: dict[str, float] = {}
        for name, value in _LINE.findall(text) if status == 200 else ():
            sums[name] = sums.get(name, 0.0) + float(value)
        return sums

    def close(self) -> None:
        """Answers what it has begun, then ends."""
        if self.is_running() and self._process is not None:
            self._process.send_signal(signal.SIGTERM)
        self._thread.join()
        self._folder.cleanup()
