"""cairn.serve_app: what it chooses, without Ray; and two replicas of a real Ray Serve."""
import http.client
import json
import os
import random
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from cairn.serve_app._choice import Chooser, Pace, PrefixTable, paces
from cairn.serve_app._figures import Watch
from cairn.serve_app._prompt import BLOCK_BYTES, id_of, makes_owned, prompt_of
from cairn.serve_app._server import NumaNode, Server
from conftest import BUILD, SOURCE

CHAT = "/v1/chat/completions"
KEY = "a-key-for-the-tests-only"


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("CAIRN_PROGRAM", str(BUILD / "cairn"))


def chat(*texts, model="m", headers=None, **more):
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    body = json.dumps({"model": model, "messages": messages, **more}).encode()
    return prompt_of(CHAT, headers or {}, body)


def test_a_prompt_begins_with_the_keys_of_what_it_continues():
    first, second = chat("a", "b", "c"), chat("a", "b", "c", "d" * 3 * BLOCK_BYTES, "e")
    assert second.keys[:3] == first.keys and second.ends[:3] == first.ends
    assert len(second.keys) == 3 + 4 + 1 and second.size > 3 * BLOCK_BYTES
    assert first.affinity == second.affinity != chat("b", "b", "c").affinity
    assert chat("ab", "c").keys[1] != chat("a", "bc").keys[1]
    # Another model, another key, other tools: nothing in common.
    for other in (chat("a", "b", "c", model="n"),
                  chat("a", "b", "c", headers={"authorization": "Bearer x"}),
                  chat("a", "b", "c", tools=[{"type": "function"}])):
        assert not set(other.keys) & set(first.keys)
    # Members in another order are the same.
    body = b'{"messages":[{"content":"a","role":"user"}],"stream":true,"model":"m"}'
    assert prompt_of(CHAT, {}, body).keys == chat("a").keys


@pytest.mark.parametrize("path,body", [
    ("/v1/completions", {"prompt": "x" * 5000}),
    ("/v1/responses", {"instructions": "i", "input": "x"}),
    ("/v1/responses", {"input": [{"role": "user", "content": "x"}]}),
    ("/v1/messages", {"system": "s", "messages": [{"role": "user", "content": "x"}]}),
    ("/api/generate", {"prompt": "x"}),
])
def test_every_form_has_prefixes(path, body):
    prompt = prompt_of(path, {}, json.dumps(body).encode())
    assert prompt.keys and list(prompt.ends) == sorted(prompt.ends) and prompt.owned is None


def test_what_is_no_prompt_is_none():
    for body in (b"", b"[", b"[1]", b'"x"', b'{"messages":7}', b"\xff", b"[" * 100000):
        assert prompt_of(CHAT, {}, body).keys == ()
    with_key = chat("a", prompt_cache_key="mine")
    assert with_key.affinity == chat("b", prompt_cache_key="mine").affinity
    assert chat("a", headers={"x-cairn-affinity": "me"}).affinity == chat(
        "b", headers={"x-cairn-affinity": "me"}).affinity


def test_what_one_server_alone_has_is_told_by_its_name():
    assert prompt_of("/v1/sessions/mine/generate", {}, b"{}").owned == "mine"
    assert prompt_of("/v1/sessions", {}, b'{"id": "mine"}').owned == "mine"
    assert prompt_of("/v1/responses/resp_1", {}, b"").owned == "resp_1"
    assert prompt_of("/v1/responses", {}, b'{"previous_response_id":"resp_1"}').owned == "resp_1"
    assert makes_owned("/v1/responses", b"{}") and not makes_owned(CHAT, b"{}")
    assert id_of(b'{"object":"session","id": "one","x":{"id":"two"}}') == "one"
    assert id_of(b'data: {"type"') is None


def test_the_table_forgets_what_was_used_longest_ago():
    table = PrefixTable(entries_max=3)
    table.add(chat("a", "b"), "one")
    table.add(chat("a", "c"), "two")
    assert table.known(chat("a", "b")) == {"one": chat("a", "b").size, "two": chat("a").size}
    table.add(chat("d"), "two")  # "a" was used later than "b".
    assert table.known(chat("a", "b")) == {"one": chat("a").size, "two": chat("a").size}
    for name in "vwxyz":
        table.add(chat("d"), name)
    assert len(table.known(chat("d"))) == PrefixTable.HOLDERS_MAX


def test_a_prompt_goes_where_it_is_answered_soonest():
    chooser = Chooser()
    idle = Pace(ms_per_token=1, prompt_ms=100)
    replicas = {name: idle for name in ("one", "two", "three")}
    prompt = chat("x" * 4000)
    home = chooser.ranked(prompt, replicas)[0]
    other = next(name for name in replicas if name != home)
    chooser.routed(prompt, other)
    chooser.ended(other)
    longer = chat("x" * 4000, "y", "z")
    assert chooser.ranked(longer, replicas)[0] == other
    # A thousand tokens are worth a wait of nine prompts, and none of twenty.
    assert chooser.ranked(longer, {**replicas, other: Pace(1, 100, 9)})[0] == other
    assert chooser.ranked(longer, {**replicas, other: Pace(1, 100, 20)})[0] == home
    # One that was started a moment ago, and does not tell of it yet.
    for _ in range(20):
        chooser.routed(chat("w"), other)
    assert chooser.ranked(longer, replicas)[0] == home
    # Who is gone is not chosen.
    assert other not in chooser.ranked(longer, {home: idle})
    assert sorted(chooser.ranked(longer, replicas)) == sorted(replicas)


def test_small_differences_move_nobody():
    told = {"one": {"ms_per_token": 1.0, "prompt_ms": 90.0}, "two": {"ms_per_token": 1.2},
            "new": {}}
    assert paces(told)["new"] == Pace(1.1, 90, 0) and paces(told)["two"].prompt_ms == 90
    chooser = Chooser()
    homes = [chooser.ranked(chat(f"{i}" + "x" * 400), paces(told))[0] for i in range(300)]
    assert all(60 < homes.count(name) < 140 for name in told)


def test_the_owner_is_asked_whatever_it_does():
    chooser = Chooser()
    replicas = {"one": Pace(1, 100, 1000), "two": Pace()}
    named = prompt_of("/v1/sessions/mine", {}, b"")
    assert chooser.ranked(named, replicas, "one") == ["one"]
    # What was made before this router knew anything: by its name, for every router.
    assert chooser.ranked(named, replicas) == Chooser().ranked(named, replicas)
    assert len(chooser.ranked(named, replicas)) == 1


def test_conversations_spread_and_stay_when_a_replica_comes():
    chooser = Chooser()
    replicas = {f"r{i}": Pace() for i in range(8)}
    prompts = [chat(f"conversation {i}") for i in range(800)]
    homes = [chooser.ranked(prompt, replicas)[0] for prompt in prompts]
    assert all(60 < homes.count(name) < 140 for name in replicas)
    replicas["r8"] = Pace()
    moved = sum(chooser.ranked(p, replicas)[0] != home for p, home in zip(prompts, homes))
    assert 40 < moved < 140


def test_figures_are_of_the_time_between_two_looks():
    watch = Watch()
    name = "cairn_request_queue_time_seconds"
    metrics = {f"{name}_sum": 8.0, f"{name}_count": 4.0, "cairn_num_requests_running": 1.0}
    assert watch.look(metrics, 0)["queue_seconds"] == 2
    assert watch.look(metrics, 1) == {"busy": 1, "queue_seconds": 0}
    metrics["cairn_num_requests_waiting"] = 3.0
    watch.look(metrics, 2)
    assert watch.look(metrics, 7) == {"busy": 4, "queue_seconds": 5}
    # A prompt was begun: those that wait have waited since then at least.
    metrics.update({f"{name}_sum": 9.0, f"{name}_count": 5.0})
    assert watch.look(metrics, 8)["queue_seconds"] == 1
    prefill = "cairn_request_prefill_time_seconds"
    metrics.update({f"{prefill}_sum": 2.0, f"{prefill}_count": 4.0,
                    "cairn_prefix_cache_queries_total": 1500.0,
                    "cairn_prefix_cache_hits_total": 500.0})
    told = watch.look(metrics, 9)
    assert told["prompt_ms"] == 500 and told["ms_per_token"] == 2
    assert watch.look({}, 10) == told  # It did not say.


def test_a_numa_node_is_taken_once(tmp_path):
    nodes, locks = tmp_path / "nodes", str(tmp_path / "locks")
    cpu = min(os.sched_getaffinity(0))
    for name, cpus in (("node0", f"{cpu}"), ("node1", f"{cpu},100000-100003"),
                       ("node2", "100000-100003"), ("node3", "")):
        (nodes / name).mkdir(parents=True)
        (nodes / name / "cpulist").write_text(cpus + "\n")
    first = NumaNode(str(nodes), locks)
    second = NumaNode(str(nodes), locks)
    assert first.cpus == second.cpus == [cpu]
    with pytest.raises(RuntimeError, match="found 2 with one"):
        NumaNode(str(nodes), locks)
    first.close()
    NumaNode(str(nodes), locks).close()
    second.close()


def test_a_server_ends_with_whoever_started_it():
    with pytest.raises(RuntimeError, match="expected it to start, found exit code"):
        Server("/no/such/model.gguf")
    with closing(Server("", ["--threads", "1"])) as server:
        server.check()
        assert server.metrics()["cairn_num_requests_running"] == 0
        words = Path(f"/proc/{server._process.pid}/cmdline").read_bytes().split(b"\0")
        assert b"--unix-socket" in words  # The program itself, no shell around it.
    assert not server.is_running()
    with pytest.raises(RuntimeError, match="it is gone"):
        server.check()
    code = ("import sys\nfrom cairn.serve_app._server import Server\n"
            "print(Server('', ['--threads', '1'])._process.pid, flush=True)\n"
            "sys.stdin.read()")
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    for _ in range(600):
        status = Path(f"/proc/{child}/stat")
        if not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"the server {child} outlived its parent")


def test_metrics_are_read_where_there_are_keys(tmp_path):
    path = tmp_path / "keys"
    path.touch(mode=0o600)
    path.write_text(KEY + "\n")
    with closing(Server("", ["--threads", "1", "--api-key-file", str(path)])) as server:
        assert server.metrics()["cairn_num_requests_running"] == 0
    with closing(Server("", ["--threads", "1", "--admin-key-file", str(path)])) as server:
        assert server._key == KEY and "cairn_num_requests_running" in server.metrics()


def test_importing_cairn_imports_no_ray():
    code = "import sys, cairn, cairn.serve_app; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_options_are_read_from_texts():
    pytest.importorskip("ray.serve")
    from cairn.serve_app import Options, QueueTimePolicy

    options = Options.read({"model": "m.gguf", "replicas": "2-8", "arguments": "--parallel 4 'a b'",
                            "numa": "true", "cpus": "8", "queue_seconds": "0.5"})
    assert options == Options(model="m.gguf", replicas=(2, 8), numa=True, cpus=8,
                              arguments=("--parallel", "4", "a b"), queue_seconds=0.5)
    for wrong in ({"modle": "x"}, {"replicas": "3-2"}, {"replicas": "0"}, {"numa": "2"}):
        with pytest.raises(ValueError):
            Options.read(wrong)

    def wanted(here, waits, requests):
        context = SimpleNamespace(
            current_num_replicas=here, running_replicas=list(range(here)),
            total_num_requests=requests,
            aggregated_metrics={"queue_seconds": dict(enumerate(waits))})
        return QueueTimePolicy(target_seconds=2)(context)[0]

    assert wanted(2, [1, 1], 9) == 2  # Short waits.
    assert wanted(2, [3, 3], 9) == 3
    assert wanted(2, [100, 100], 90) == 4  # At most twice as many.
    assert wanted(4, [0, 0, 0, 0], 2) == 3  # Three have enough of them.
    assert wanted(4, [0, 0, 0, 0], 3) == 4
    assert wanted(4, [1, 1, 1, 1], 2) == 4
    assert wanted(2, [], 0) == 1


class Cluster:
    """Ray Serve with two replicas that want a key."""

    def __init__(self, folder):
        import ray
        from ray import serve

        from cairn.serve_app import Options, build

        self.ray, self.serve = ray, serve
        keys = folder / "keys"
        keys.touch(mode=0o600)
        keys.write_text(KEY + "\n")
        self.port = random.randrange(20000, 30000)
        for is_last in (False, True):  # On a busy machine it gives up after 30 seconds.
            try:
                ray.init(address="local", num_cpus=8, include_dashboard=False,
                         log_to_driver=False, object_store_memory=128 << 20,
                         _temp_dir=str(folder / f"ray{is_last:d}"))
                break
            except Exception:
                ray.shutdown()
                if is_last:
                    raise
        serve.start(http_options={"host": "127.0.0.1", "port": self.port})
        serve.run(build(Options(
            replicas=(2, 2), per_machine=0,
            arguments=("--threads", "1", "--memory-budget", "64MiB",
                       "--api-key-file", str(keys)))))

    def ask(self, path, body=None, key=KEY, **headers):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {key}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def servers(self):
        """By their process ids, the replicas' servers: those with this cluster's key file."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--unix-socket" in words and any(b"keys" in word for word in words):
                found[int(path.parent.name)] = words[words.index(b"--unix-socket") + 1].decode()
        return found

    def close(self):
        self.serve.shutdown()
        self.ray.shutdown()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("ray.serve")
    patch = pytest.MonkeyPatch()
    # A path of sockets may have 107 bytes.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        patch.setenv("CAIRN_PROGRAM", str(BUILD / "cairn"))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join(
            [str(SOURCE / "python"), os.environ.get("PYTHONPATH", "")]))
        started = Cluster(Path(folder))
        yield started
        started.close()
    patch.undo()


def question(number):
    return [{"role": "user", "content": f"Tell me of number {number}. " * 12}]


def order(messages, **more):
    return {"messages": messages, "max_tokens": 12, "temperature": 0, **more}


def test_conversations_return_to_the_replica_that_has_them(cluster):
    homes, answers = set(), []
    for number in range(6):
        messages, home = question(number), None
        for turn in range(3):
            status, headers, body = cluster.ask(CHAT, order(messages))
            assert status == 200, body
            told = json.loads(body)
            home = home or headers["x-cairn-replica"]
            assert headers["x-cairn-replica"] == home
            if turn:
                assert told["memory"]["reused"] > 80, told["memory"]
            message = told["choices"][0]["message"]
            answers.append((list(messages), message))
            messages += [message, {"role": "user", "content": "And then?"}]
        homes.add(home)
    assert len(homes) == 2
    # The answers are those of a server alone.
    with closing(Server("", ["--threads", "1"])) as alone:
        from cairn.serve_app._server import _UnixConnection

        for messages, message in answers[::3]:
            connection = _UnixConnection(alone.path, 60)
            connection.request("POST", CHAT, json.dumps(order(messages)))
            assert json.loads(connection.getresponse().read())["choices"][0]["message"] == message
            connection.close()


def test_the_interface_is_that_of_the_server(cluster):
    status, headers, body = cluster.ask("/v1/models")
    assert status == 200 and json.loads(body)["data"][0]["id"] == "cairn-nano"
    assert headers["content-type"] == "application/json" and headers["x-request-id"]
    status, headers, body = cluster.ask("/v1/models", key="wrong-key-of-16-characters")
    assert status == 401 and json.loads(body)["error"]["code"] == "invalid_api_key"
    assert headers["www-authenticate"] == "Bearer"
    assert cluster.ask("/no/such/route")[0] == 404
    status, _, body = cluster.ask(CHAT, {"messages": [], "temperature": -1})
    assert status == 400 and b"error" in body
    assert cluster.ask("/v1/models?x=%2F")[0] == 200
    status, _, body = cluster.ask("/v1/models/cairn%2Dnano")
    assert status == 200 and json.loads(body)["id"] == "cairn-nano"
    large = {"messages": [{"role": "user", "content": "x" * (33 << 20)}]}
    status, _, body = cluster.ask(CHAT, large)
    assert status == 413 and b"expected at most" in body


LONG = {"prompt": "Once upon a time", "max_tokens": 400, "temperature": 0, "ignore_eos": True}


def test_streams_come_as_they_are_made(cluster):
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=120)
    connection.request("POST", "/v1/completions", json.dumps({**LONG, "stream": True}),
                       {"Authorization": f"Bearer {KEY}"})
    reply = connection.getresponse()
    assert reply.getheader("content-type").startswith("text/event-stream")
    pieces, times = [], []
    while piece := reply.read1(65536):
        pieces.append(piece)
        times.append(time.monotonic())
    text = b"".join(pieces).decode()
    assert len(pieces) > 5 and times[-1] > times[0]
    assert text.endswith("data: [DONE]\n\n")
    events = [json.loads(line[6:]) for line in text.split("\n\n")[:-2] if line.startswith("data: ")]
    streamed = "".join(e["choices"][0]["text"] for e in events if e["choices"])
    whole = json.loads(cluster.ask("/v1/completions", LONG)[2])
    assert streamed == whole["choices"][0]["text"] != ""


def counts(cluster, name):
    """Of a metric, by replica."""
    found = {}
    for number in range(200):
        status, headers, body = cluster.ask("/metrics", **{"X-Cairn-Affinity": str(number)})
        assert status == 200, body
        found[headers["x-cairn-replica"]] = sum(
            float(line.split()[-1]) for line in body.decode().splitlines() if line.startswith(name))
        if len(found) == 2:
            return found
    raise AssertionError(f"expected two replicas, found {found}")


def test_a_client_that_goes_away_ends_its_answer(cluster):
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=120)
    connection.request(
        "POST", "/v1/completions",
        json.dumps({**LONG, "max_tokens": 1900, "stream": True}),
        {"Authorization": f"Bearer {KEY}"})
    reply = connection.getresponse()
    home = reply.getheader("x-cairn-replica")
    assert reply.read1(100)
    reply.close()
    connection.close()
    for _ in range(600):
        running = counts(cluster, "cairn_num_requests_running")
        cancelled = counts(cluster, "cairn_answers_cancelled_total")
        if running[home] == 0 and cancelled[home] == 1:
            return
        time.sleep(0.1)
    raise AssertionError(f"the answer went on: {running}, cancelled {cancelled}")


def test_sessions_and_responses_stay_where_they_were_made(cluster):
    for number in range(4):
        status, headers, body = cluster.ask("/v1/sessions", {})
        assert status == 200, body
        name, home = json.loads(body)["id"], headers["x-cairn-replica"]
        status, headers, body = cluster.ask(
            f"/v1/sessions/{name}/generate", order(question(number)))
        assert (status, headers["x-cairn-replica"]) == (200, home), body
        status, headers, body = cluster.ask(f"/v1/sessions/{name}/fork", {"id": f"other{number}"})
        assert (status, headers["x-cairn-replica"]) == (200, home), body
        assert cluster.ask(f"/v1/sessions/other{number}")[0] == 200
        status, headers, body = cluster.ask(
            "/v1/responses", {"input": f"Number {number}?", "max_output_tokens": 8})
        assert status == 200, body
        home = headers["x-cairn-replica"]
        status, headers, body = cluster.ask(
            "/v1/responses", {"input": "And?", "max_output_tokens": 8,
                              "previous_response_id": json.loads(body)["id"]})
        assert (status, headers["x-cairn-replica"]) == (200, home), body


def test_a_killed_server_s_conversations_go_on_elsewhere(cluster):
    messages = question(9)
    status, headers, body = cluster.ask(CHAT, order(messages))
    home, message = headers["x-cairn-replica"], json.loads(body)["choices"][0]["message"]
    messages += [message, {"role": "user", "content": "And then?"}]
    expected = json.loads(cluster.ask(CHAT, order(messages))[2])["choices"][0]["message"]
    (victim,) = [pid for pid, path in cluster.servers().items() if f"-{home}-" in path]
    os.kill(victim, 9)
    status, headers, body = cluster.ask(CHAT, order(messages))
    assert status == 200 and headers["x-cairn-replica"] != home
    assert json.loads(body)["choices"][0]["message"] == expected
    for _ in range(240):  # The replica is replaced.
        there = cluster.servers()
        if len(there) == 2 and victim not in there:
            return
        time.sleep(0.5)
    raise AssertionError(f"the replica was not replaced: {there}")


def test_there_are_more_replicas_when_prompts_wait(cluster):
    import threading

    from cairn.serve_app import Options, build

    # A second application, below a path of its own. Its memory has room for few answers at a time.
    cluster.serve.run(build(Options(
        replicas=(1, 2), per_machine=0, queue_seconds=0.2, scale_seconds=2,
        arguments=("--threads", "1", "--memory-budget", "8MiB"))), name="small",
        route_prefix="/small")
    assert cluster.ask("/small/v1/models/cairn%2Dnano")[0] == 200
    is_enough = threading.Event()

    def ask(number):
        while not is_enough.is_set():
            cluster.ask("/small/v1/completions",
                        {**LONG, "prompt": f"{number}", "max_tokens": 1500})

    def replicas():
        told = cluster.serve.status().applications["small"].deployments["cairn-engine"]
        return told.replica_states.get("RUNNING", 0)

    askers = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for asker in askers:
        asker.start()
    try:
        for _ in range(240):
            if replicas() == 2:
                break
            time.sleep(0.5)
        assert replicas() == 2
    finally:
        is_enough.set()
        for asker in askers:
            asker.join()
        cluster.serve.delete("small")
