"""For tests of deploy/: servers, Redis and the proxy as processes, each on this machine's address
or in a network namespace of its own, and a client that says what became of a request."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from held_port import hold_port  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
KEY = "a-key-for-the-tests-only"
HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
# A process ends with the test, however that ends.
TIED = ["setpriv", "--pdeathsig", "KILL", "--"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need(*programs):
    """Skips the test, by name, where one of them is missing."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for program in programs:
        if shutil.which(program) is None:
            skip(f"no {program} here")


def wait_until(condition, what, seconds=60):
    """The first value of `condition` that is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"expected within {seconds} s: {what}"
        time.sleep(0.01)
    return value


HELD = []  # Open until the test's process ends.


def hold_ports(count):
    """Free ports of 127.0.0.1, for what this test starts and for nobody else."""
    sockets = [hold_port() for _ in range(count)]
    HELD.extend(sockets)
    return [one.getsockname()[1] for one in sockets]


class Process:
    """A program that is ended when the test is done with it. `where`: words before its command,
    such as those that put it into a namespace."""

    def __init__(self, command, where=(), env=None, log=None):
        self.log = log
        with open(log or os.devnull, "ab") as out:
            self.process = subprocess.Popen(
                [*TIED, *where, *map(str, command)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, env={**os.environ, **(env or {})})

    def send(self, number):
        self.process.send_signal(number)

    def stop(self):
        """As an operator does. The exit code."""
        self.send(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def kill(self):
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def is_running(self):
        return self.process.poll() is None

    def wait_to_serve(self, condition):
        """Until that is true; fails with what the process has said where it ends before, or takes
        too long."""
        end = time.monotonic() + 60
        while not condition():
            assert self.is_running() and time.monotonic() < end, (
                f"expected that {self.process.args} serves, found that it "
                f"{'does not yet' if self.is_running() else 'has ended'}:\n"
                f"{pathlib.Path(self.log).read_text(errors='replace')}")
            time.sleep(0.01)
        return self


class Node(Process):
    """A `cairn serve` of the built-in model."""

    def __init__(self, program, address, folder, *options, where=()):
        host, port = address.split(":")
        self.address = address
        super().__init__(
            [program, "serve", "--host", host, "--port", port, "--threads", "1",
             "--request-log", "none", *options],
            where, {"CAIRN_API_KEY": KEY}, folder / f"node-{host}-{port}.log")

    def health(self):
        return ask(self.address, "/health").status

    def wait_ready(self):
        return self.wait_to_serve(lambda: self.health() == 200)

    def chat(self, text, **more):
        return ask(self.address, "/v1/chat/completions",
                   chat([{"role": "user", "content": text}], **more))

    def metrics(self):
        return read_metrics(ask(self.address, "/metrics").text)


class Redis(Process):
    def __init__(self, address, folder, where=()):
        host, port = address.split(":")
        self.address = address
        super().__init__(
            ["redis-server", "--bind", host, "--port", port, "--protected-mode", "no", "--save", "",
             "--appendonly", "no", "--maxmemory", "256mb", "--maxmemory-policy", "allkeys-lfu",
             "--dir", folder], where, None, folder / "redis.log")

    def wait_ready(self):
        return self.wait_to_serve(lambda: can_connect(self.address))


class Proxy(Process):
    """HAProxy with the file of deploy/; `nodes`: addresses of the first servers, or a name that has
    those of all."""

    def __init__(self, address, folder, nodes, where=(), ports=(8405, 8406)):
        self.address = address
        self.socket_path = folder / "proxy.sock"
        env = {"CAIRN_PROXY_BIND": address, "CAIRN_PROXY_SOCKET": str(self.socket_path),
               "CAIRN_PROXY_METRICS": f"127.0.0.1:{ports[0]}",
               "CAIRN_PROXY_PEERS": f"127.0.0.1:{ports[1]}"}
        if isinstance(nodes, str):
            env["CAIRN_NODES"] = nodes
        else:
            env |= {f"CAIRN_NODE_{index}": node for index, node in enumerate(nodes, 1)}
        super().__init__(["haproxy", "-W", "-db", "-f", DEPLOY / "haproxy.cfg"], where, env,
                         folder / "proxy.log")

    def kill(self):
        """The worker, too, which would finish what it has begun."""
        workers = children_of(self.process.pid)
        super().kill()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        # The next one's socket is there when that one has made it, and not before.
        self.socket_path.unlink(missing_ok=True)

    def say(self, command):
        """What it replies to a command of its administration."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(10)
            asking.connect(str(self.socket_path))
            asking.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: asking.recv(65536), b"")).decode().strip()

    def stats(self, column):
        """Of each server, and of all (BACKEND)."""
        head, *lines = self.say("show stat").splitlines()
        rows = [dict(zip(head.lstrip("# ").split(","), line.split(","))) for line in lines]
        return {row["svname"]: row[column] for row in rows if row["pxname"] == "cairn"}

    def stat(self, name, column):
        """None: it knows none of this name."""
        return self.stats(column).get(name)

    def is_up(self, name):
        """Whether it gives requests to the server; None: it knows none."""
        status = self.stat(name, "status")
        return status and status.startswith("UP")

    def wait_idle(self):
        """What has ended is not counted any more: of two requests one may go elsewhere."""
        wait_until(lambda: self.stat("BACKEND", "scur") == "0", "the proxy is idle")

    def wait_for(self, name, is_up):
        wait_until(lambda: self.is_up(name) == is_up, f"{name} is {'up' if is_up else 'down'}")

    def is_ready(self):
        """Whether clients and its administration can connect; it listens for one of them first."""
        try:
            return can_connect(self.address) and self.say("show stat") != ""
        except OSError:
            return False

    def wait_ready(self, *names):
        self.wait_to_serve(self.is_ready)
        for name in names:
            self.wait_for(name, True)
        return self


def children_of(process):
    try:
        text = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(word) for word in text.split()]


def can_connect(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        return True
    except OSError:
        return False


def read_metrics(text):
    """Sums over labels, and each line with its own."""
    values = {}
    for line in text.splitlines():
        if found := re.match(r"(([a-zA-Z_:]+)(?:\{[^}]*\})?) (\S+)$", line):
            for name in {found[1], found[2]}:
                values[name] = values.get(name, 0) + float(found[3])
    return values


class Reply:
    """`error` is what went wrong below HTTP, or null."""

    def __init__(self):
        self.status, self.headers, self.text, self.error = 0, {}, "", None

    @property
    def node(self):
        return self.headers.get("x-cairn-node")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def is_whole_stream(self):
        return self.error is None and self.text.endswith("data: [DONE]\n\n")

    def __repr__(self):
        return f"status {self.status}, {self.node}, error {self.error!r}: {self.text[-300:]}"


def ask(address, path, body=None, headers=None, timeout=60, on_bytes=None):
    """Sends a request once, and nothing again. `on_bytes`: told whenever something has come."""
    reply = Reply()
    host, port = address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    try:
        connection.request("POST" if body is not None else "GET", path,
                           None if body is None else json.dumps(body),
                           {**HEADERS, **(headers or {})})
        came = connection.getresponse()
        reply.status = came.status
        reply.headers = {name.lower(): value for name, value in came.getheaders()}
        while piece := came.read1(65536):
            reply.text += piece.decode()
            if on_bytes:
                on_bytes(reply)
    except (OSError, http.client.HTTPException) as error:
        reply.error = error
    finally:
        connection.close()
    return reply


def words(seed, count):
    """A text that begins differently for each seed."""
    return f"Tell me of number {seed}." + "".join(
        f" And of the {'sea' if (seed * 7 + n) % 3 else 'moon'} {n}." for n in range(count))


def chat(messages, **more):
    return {"messages": messages, "temperature": 0, "max_tokens": 4, **more}
