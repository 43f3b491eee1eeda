#!/usr/bin/env python3
"""Hubs for tests, on two ports of this machine: one answers as Hugging Face's interface and
Ollama's registry do, the other has the files, as their storage does. They are different origins.

  hub_server.py FOLDER [CERTIFICATE KEY]

Prints "PORT PORT", then serves until its standard input ends. A repository OWNER/BEHAVIOUR-NAME has
the files of FOLDER/NAME and misbehaves as BEHAVIOUR says (see Storage and Hub). Every request is a
line of JSON in FOLDER/log.
"""
import hashlib
import http.server
import json
import os
import pathlib
import socket
import ssl
import sys
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAGE = 2
TOKEN = "hf_secret"


class Shared:
    def __init__(self, folder):
        self.folder, self.lock, self.counts = folder, threading.Lock(), {}
        self.hub_url = self.storage_url = ""

    def count(self, what):
        """How often this was asked before."""
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1
            return self.counts[what] - 1

    def note(self, **fields):
        with self.lock, open(self.folder / "log", "a", encoding="utf-8") as log:
            log.write(json.dumps(fields) + "\n")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = urllib.parse.parse_qs(url.query)
        parts = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
        self.server.shared.note(server=self.name, path=self.path, range=self.headers["Range"],
                                token=self.headers["Authorization"])
        try:
            self.answer(parts)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def reply(self, status, body=b"", **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def abort(self):
        """The connection ends in the midst, without a word."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def files_of(self, repository):
        behaviour, _, name = repository.partition("-")
        folder = self.server.shared.folder / name
        files = sorted(p for p in folder.rglob("*") if p.is_file()) if folder.is_dir() else []
        return behaviour, {str(p.relative_to(folder)): p for p in files}


def ends_of(header, size):
    """The range that is asked for; all where none is."""
    if not header or not header.startswith("bytes="):
        return 0, size
    first, _, last = header[6:].partition("-")
    return int(first), min(int(last or size - 1) + 1, size)


class Storage(Handler):
    """/OWNER/REPOSITORY/PATH?signature=N. Behaviours of what it sends: slow (in small steps), cut
    (ends after 30,000 bytes), many (the first two requests of each range are answered 429), norange
    (all of it, always), hash (other bytes), short (says another size), wide (another range), stall
    (stops), expired (403 to addresses that were used once), swap (the same, and the hub says
    another digest each time), page (a page of HTML), long (goes on beyond the range), gone (403
    always), later (the first request behind 100,000 bytes is answered "come much later"), busy (all
    are), other (behind 100,000 bytes parts are of another file of the same size, whatever If-Range
    says), weak (the same with weak ETags), dated (the same with dates and no ETags)."""
    name = "storage"

    def answer(self, parts):
        shared = self.server.shared
        behaviour, files = self.files_of(parts[1])
        path = files.get("/".join(parts[2:]))
        if path is None:
            return self.reply(404)
        data = path.read_bytes()
        if behaviour == "hash":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if behaviour == "page":
            data = b"<!DOCTYPE html>" + data[15:]
        asked = self.headers["Range"]
        first, end = ends_of(asked, len(data))
        is_other = behaviour in ("other", "weak", "dated") and first >= 100000
        if is_other:
            data = data[::-1]
        probe = asked == "bytes=0-0"
        if behaviour == "gone":
            return self.reply(403)
        if behaviour == "many" and not probe and shared.count(self.path + str(asked)) < 2:
            return self.reply(429, Retry_After=0)
        if behaviour == "later" and first >= 100000 and shared.count("later") == 0:
            return self.reply(503, Retry_After=100000)
        if behaviour == "busy":
            return self.reply(503, Retry_After=100000)
        if behaviour in ("expired", "swap") and not probe and shared.count(self.path) > 0:
            return self.reply(403)
        if behaviour == "norange" or not asked:
            return self.whole(behaviour, data)
        total = len(data) + (1 if behaviour == "short" else 0)
        body = data[first:end]
        shown = (first + 1, end) if behaviour == "wide" and not probe else (first, end - 1)
        self.send_response(206)
        if behaviour == "dated":
            self.send_header("Last-Modified", f"Mon, 0{1 + is_other} Jan 2024 00:00:00 GMT")
        else:
            weak = "W/" if behaviour == "weak" else ""
            self.send_header("ETag", f'{weak}"{hashlib.md5(data).hexdigest()}"')
        self.send_header("Content-Range", f"bytes {shown[0]}-{shown[1]}/{total}")
        if behaviour == "long" and not probe:
            body += b"more"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.send_body(behaviour, body)
        return None

    def whole(self, behaviour, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if behaviour == "norange" and self.server.shared.count("norange") == 1:
            self.wfile.write(data[:len(data) // 2])
            return self.abort()
        return self.wfile.write(data)

    def send_body(self, behaviour, body):
        if behaviour == "cut" and len(body) > 30000:
            self.wfile.write(body[:30000])
            self.abort()
        elif behaviour == "stall" and len(body) > 1:
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            self.server.stop.wait(30)
            self.abort()
        elif behaviour == "slow":
            for begin in range(0, len(body), 5000):
                self.wfile.write(body[begin:begin + 5000])
                self.wfile.flush()
                time.sleep(0.05)
            self.server.shared.note(ended=self.path)
        else:
            self.wfile.write(body)


class Hub(Handler):
    """Behaviours: gated, private (401 without a token; gated: 403 with it too), loop (redirects
    without end), huge (an answer without end), header (headers without end), down (503 twice),
    elsewhere (the next page is on another host), plain (over TLS: a redirect out of it)."""
    name = "hub"

    def answer(self, parts):
        if parts[:2] == ["api", "models"] and len(parts) == 2:
            return self.search()
        if parts[:2] == ["api", "models"]:
            return self.describe(parts[2], parts[3], parts[4:])
        if parts[0] == "v2":
            return self.registry(parts[1:])
        if len(parts) > 4 and parts[2] == "resolve":
            return self.resolve(parts[0], parts[1], "/".join(parts[4:]))
        return self.reply(404)

    def search(self):
        words = self.query["search"][0].lower().split("-")[-1][:3]
        names = [p.name for p in sorted(self.server.shared.folder.iterdir()) if p.is_dir()]
        self.reply(200, [{"id": f"acme/plain-{name}"} for name in names if words in name])

    def refuses(self, behaviour, files):
        token = self.headers["Authorization"]
        if not files or behaviour == "private" and token is None:
            self.reply(404 if token else 401, b"{}", X_Error_Code="RepoNotFound",
                       X_Error_Message="Repository not found")
        elif behaviour == "gated":
            self.reply(403 if token else 401, b"{}", X_Error_Code="GatedRepo",
                       X_Error_Message="Access is restricted")
        elif behaviour == "private" and token != f"Bearer {TOKEN}":
            self.reply(401, b"{}")
        else:
            return False
        return True

    def describe(self, owner, repository, rest):
        behaviour, files = self.files_of(repository)
        if self.refuses(behaviour, files):
            return None
        if behaviour == "down" and self.server.shared.count("down") < 2:
            return self.reply(503)
        if behaviour == "huge":
            return self.reply(200, b"[" * (9 << 20))
        if behaviour == "header":
            return self.reply(200, b"{}", X_Much="x" * 70000)
        if rest[0] == "revision":
            if rest[1] != "main":
                return self.reply(404, b"{}", X_Error_Code="RevisionNotFound")
            return self.reply(200, {"id": f"{owner}/{repository}", "sha": COMMIT})
        begin = int(self.query.get("cursor", ["0"])[0])
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "folder"}]
        for path, place in files.items():
            data = place.read_bytes()
            entry = {"type": "file", "oid": "1" * 40, "size": len(data), "path": path}
            if path.endswith((".gguf", ".safetensors")):
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data),
                                "pointerSize": 134}
            entries.append(entry)
        headers = {}
        if begin + PAGE < len(entries):
            base = self.server.shared.storage_url if behaviour == "elsewhere" else \
                self.server.shared.hub_url
            path = self.path.split("?", maxsplit=1)[0]
            headers["Link"] = f'<{base}{path}?recursive=true&cursor={begin + PAGE}>; rel="next"'
        return self.reply(200, entries[begin:begin + PAGE], **headers)

    def resolve(self, owner, repository, path):
        behaviour, files = self.files_of(repository)
        if self.refuses(behaviour, files):
            return None
        if behaviour == "loop":
            return self.reply(302, Location=self.path)
        if path not in files:
            return self.reply(404, X_Error_Code="EntryNotFound")
        data = files[path].read_bytes()
        base = self.server.shared.storage_url
        if behaviour == "plain":
            base = base.replace("https:", "http:")
        number = self.server.shared.count("resolve")
        if behaviour == "swap":
            data += str(number).encode()
        return self.reply(302, X_Repo_Commit=COMMIT, X_Linked_Size=len(data),
                          X_Linked_Etag='"' + hashlib.sha256(data).hexdigest() + '"',
                          Location=f"{base}/{owner}/{repository}/"
                                   f"{urllib.parse.quote(path)}?signature={number}")

    def registry(self, parts):
        """NAMESPACE/BEHAVIOUR-NAME/manifests/TAG: the file TAG.gguf of the folder NAME."""
        repository = parts[1]
        _, files = self.files_of(repository)
        if parts[2] == "manifests":
            path = files.get(parts[3] + ".gguf")
            if path is None:
                return self.reply(404, {"errors": [{"code": "MANIFEST_UNKNOWN"}]})
            data, other = path.read_bytes(), hashlib.sha256(b"template").hexdigest()
            layers = [("model", hashlib.sha256(data).hexdigest(), len(data)),
                      ("template", other, 8), ("projector", other, 8)]
            return self.reply(200, {
                "schemaVersion": 2, "config": {"digest": "sha256:" + other, "size": 8},
                "layers": [{"mediaType": f"application/vnd.ollama.image.{kind}",
                            "digest": "sha256:" + digest, "size": size}
                           for kind, digest, size in layers]})
        for name, path in files.items():
            if "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() == parts[3]:
                base = self.server.shared.storage_url
                return self.reply(307, Location=f"{base}/{parts[0]}/{repository}/{name}?blob=1")
        return self.reply(404)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler, shared, pair):
        super().__init__(("127.0.0.1", 0), handler)
        self.shared, self.stop = shared, threading.Event()
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*pair)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"{'https' if pair else 'http'}://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # Clients that go away are what is tested.


def main():
    shared = Shared(pathlib.Path(sys.argv[1]))
    hub, storage = (Server(kind, shared, sys.argv[2:4]) for kind in (Hub, Storage))
    shared.hub_url, shared.storage_url = hub.url, storage.url
    for server in (hub, storage):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(hub.server_port, storage.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
