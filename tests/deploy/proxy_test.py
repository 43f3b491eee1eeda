#!/usr/bin/env python3
"""The proxy's file, deploy/haproxy.cfg, with a real HAProxy and three servers: conversations stay
where they were read, whatever a client says of them; a server that stops, is killed, comes, or has
too much to do.

  proxy_test.py CAIRN
"""
import concurrent.futures
import pathlib
import re
import signal
import sys
import tempfile
import threading

from machines import Node, Proxy, ask, chat, children_of, hold_ports, need, wait_until, words

NAMES = ("n1", "n2", "n3")
# Longer than what is looked at of bodies.
SYSTEM = {"role": "system", "content": "Be brief. " * 500}
DRAIN_SECONDS = 3


class Cluster:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        proxy_port, *rest = hold_ports(7)
        self.nodes = {name: self.start(f"127.0.0.1:{port}") for name, port in zip(NAMES, rest)}
        self.spare = f"127.0.0.1:{rest[3]}"
        for node in self.nodes.values():
            node.wait_ready()
        self.proxy = Proxy(f"127.0.0.1:{proxy_port}", folder,
                           [node.address for node in self.nodes.values()], ports=rest[4:6])
        self.proxy.wait_ready(*NAMES)

    def start(self, address):
        return Node(self.program, address, self.folder, "--drain-seconds", DRAIN_SECONDS)

    def ask(self, path, body=None, headers=None, **more):
        return ask(self.proxy.address, path, body, headers, **more)

    def chat(self, messages, headers=None, on_bytes=None, **more):
        return self.ask("/v1/chat/completions", chat(messages, **more), headers, on_bytes=on_bytes)


def converse(cluster, seed, turns, **how):
    """A conversation; the servers that answered its turns."""
    messages = [SYSTEM, {"role": "user", "content": words(seed, 3)}]
    seen = []
    for turn in range(turns):
        cluster.proxy.wait_idle()
        reply = cluster.chat(messages, **how)
        assert reply.status == 200, reply
        if turn > 0:
            assert reply.json["memory"]["reused"] > 0, reply
        seen.append(reply.node)
        messages += [reply.json["choices"][0]["message"], {"role": "user", "content": "And then?"}]
    return seen


def test_conversations_stay(cluster):
    ways = {
        "header": lambda seed: {"headers": {"X-Cairn-Affinity": f"conversation-{seed}"}},
        "prompt_cache_key": lambda seed: {"prompt_cache_key": f"conversation-{seed}"},
        "body": lambda seed: {},
    }
    for way, how in ways.items():
        chosen = set()
        for seed in range(24):
            seen = converse(cluster, seed, 2, **how(seed))
            assert len(set(seen)) == 1, (way, seed, seen)
            chosen.add(seen[0])
        assert chosen == set(NAMES), (way, chosen)
    # Where the first message is not the system's, it is what the conversation is known by, whatever
    # the API.
    one = [{"role": "user", "content": words(1, 3)}]
    more = [*one, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}]
    homes = set()
    for path, body in (("/v1/chat/completions", chat(one)), ("/v1/chat/completions", chat(more)),
                       ("/v1/messages", {"max_tokens": 4, "messages": more, "system": "Be kind."}),
                       ("/api/chat", {"stream": False, "messages": more})):
        cluster.proxy.wait_idle()
        reply = cluster.ask(path, body)
        assert reply.status == 200, reply
        homes.add(reply.node)
    assert len(homes) == 1, homes


def test_what_a_server_keeps(cluster):
    """Responses and sessions, which one server has, are asked of that one."""
    used = set()
    for seed in range(8):
        body = {"input": words(seed, 3), "max_output_tokens": 4, "temperature": 0}
        first = cluster.ask("/v1/responses", {**body, "stream": seed % 2 == 0})
        kept = first.headers["x-cairn-kept"]
        then = cluster.ask("/v1/responses", {
            **body, "input": "And then?", "previous_response_id": kept})
        assert then.status == 200 and then.node == first.node, (first, then)
        again = cluster.ask(f"/v1/responses/{kept}")
        assert again.status == 200 and again.node == first.node, again
        made = cluster.ask("/v1/sessions", {"id": f"session-{seed}"} if seed % 2 else {})
        name = made.json["id"]
        said = cluster.ask(f"/v1/sessions/{name}/generate",
                           chat([{"role": "user", "content": words(seed, 3)}]))
        assert said.status == 200 and said.node == made.node, (made, said)
        forked = cluster.ask(f"/v1/sessions/{name}/fork", {"id": f"fork-{seed}"})
        shown = cluster.ask(f"/v1/sessions/fork-{seed}")
        assert shown.status == 200 and shown.node == forked.node == made.node, shown
        used |= {first.node, made.node}
    assert used == set(NAMES), used


def test_a_reload(cluster):
    """Answers go on in the old process, and the new one knows who has what."""
    body = {"input": words(40, 3), "max_output_tokens": 4, "temperature": 0}
    firsts = [cluster.ask("/v1/responses", {**body, "input": words(seed, 3)})
              for seed in range(40, 46)]
    assert len({first.node for first in firsts}) > 1, firsts
    streams = Streams(cluster, ["a stream"], 4000)
    workers = children_of(cluster.proxy.process.pid)
    # Only who has looked for others that know something, ten seconds long, tells others.
    wait_until(lambda: int(re.search(r"id=reloads .* flags=(\w+)",
                                     cluster.proxy.say("show peers"))[1], 16) & 3 == 3,
               "the old process is ready to tell what it knows")
    cluster.proxy.send(signal.SIGUSR2)
    wait_until(lambda: set(children_of(cluster.proxy.process.pid)) - set(workers), "a new process")
    # It takes over what the old one knew.
    wait_until(lambda: int(cluster.proxy.say("show table cairn").split("used:")[1].split()[0])
               >= len(firsts), "the new process knows all")
    for first in firsts:
        then = cluster.ask("/v1/responses", {
            **body, "previous_response_id": first.headers["x-cairn-kept"]})
        assert then.status == 200 and then.node == first.node, (first, then)
    assert all(reply.is_whole_stream for reply in streams.replies())
    cluster.proxy.wait_ready(*NAMES)


def test_the_proxys_own_routes(cluster):
    assert cluster.ask("/health").status == 200
    assert cluster.ask("/metrics").status == 404
    reply = cluster.ask("/v1/models", headers={"X-Request-Id": "an-id"})
    assert reply.headers["x-request-id"] == "an-id", reply


class Streams:
    """Answers that are being sent, of one key each; they begin one after the other."""

    def __init__(self, cluster, keys, tokens):
        self.pool = concurrent.futures.ThreadPoolExecutor(len(keys))
        self.begun, self.pending = {}, []
        for index, key in enumerate(keys):
            self.pending.append(self.pool.submit(self.run, cluster, index, key, tokens))
            wait_until(lambda: len(self.begun) > index, f"stream {index} has begun")

    def run(self, cluster, index, key, tokens):
        return cluster.chat([{"role": "user", "content": words(index, 3)}], max_tokens=tokens,
                            headers={"X-Cairn-Affinity": key}, stream=True, ignore_eos=True,
                            on_bytes=lambda reply: self.begun.setdefault(index, reply.node))

    def replies(self):
        return [one.result() for one in self.pending]


def hello(cluster, key, is_alone=True):
    if is_alone:
        cluster.proxy.wait_idle()
    reply = cluster.chat([{"role": "user", "content": "Hello"}], max_tokens=1,
                         headers={"X-Cairn-Affinity": key})
    assert reply.status == 200, reply
    return reply


def streams_everywhere(cluster):
    """Two streams on each server, its own: in this order none has more than its part, which the
    proxy rounds down for the first ones of the list."""
    keys = {name: [] for name in NAMES}
    for index in range(100):
        keys[hello(cluster, f"key {index}").node].append(f"key {index}")
    order = [*NAMES, *reversed(NAMES)]
    streams = Streams(cluster, [keys[name][turn // 3] for turn, name in enumerate(order)], 4000)
    assert list(streams.begun.values()) == order, streams.begun
    return streams, keys


def test_others_take_the_work(cluster):
    """Of one key, at most 1.25 times a server's part goes to one server."""
    streams = Streams(cluster, ["one for all"] * 12, 1000)
    counts = {name: list(streams.begun.values()).count(name) for name in NAMES}
    assert min(counts.values()) >= 1 and max(counts.values()) <= 6, counts
    assert all(reply.is_whole_stream for reply in streams.replies())
    # Afterwards they come together again.
    assert len({hello(cluster, "one for all").node for _ in range(4)}) == 1


def test_a_server_that_stops(cluster):
    """Its streams end whole; whoever asks meanwhile is answered, by others soon."""
    streams, _ = streams_everywhere(cluster)
    leaving = "n2"
    node = cluster.nodes[leaving]
    node.send(signal.SIGTERM)
    wait_until(lambda: node.health() == 503, "it says that it stops")
    asked = 0
    while cluster.proxy.is_up(leaving):
        reply = cluster.chat([{"role": "user", "content": words(asked, 1)}])
        assert reply.status == 200, reply
        asked += 1
    assert asked > 0
    for seed in range(12):
        reply = cluster.chat([{"role": "user", "content": words(seed, 1)}])
        assert reply.status == 200 and reply.node != leaving, reply
    for reply in streams.replies():
        assert reply.is_whole_stream, reply
    assert node.process.wait(timeout=60) == 0
    cluster.nodes[leaving] = cluster.start(node.address).wait_ready()
    cluster.proxy.wait_for(leaving, True)


def test_a_server_that_is_killed(cluster):
    """Streams of others go on; those of its own end with an error; nothing is computed twice."""
    streams, keys = streams_everywhere(cluster)
    dying, others = "n3", ("n1", "n2")
    silent = []

    # One that has sent nothing yet: it was asked, and so is not asked again.
    def ask_silently():
        silent.append(cluster.chat([{"role": "user", "content": words(0, 3)}], max_tokens=4000,
                                   headers={"X-Cairn-Affinity": keys[dying][2]}, ignore_eos=True))
    thread = threading.Thread(target=ask_silently)
    thread.start()
    wait_until(lambda: cluster.nodes[dying].metrics()["cairn_requests_answering"] == 3,
               "it is being answered")
    before = sum(cluster.nodes[name].metrics()["cairn_prompt_rows_total"] for name in others)
    cluster.nodes[dying].kill()
    # Before its health is looked at: a connection that is refused has asked nothing.
    refused = [hello(cluster, key, False) for key in keys[dying][:6]]
    assert {reply.node for reply in refused} <= set(others), refused
    for index, reply in enumerate(streams.replies()):
        if streams.begun[index] == dying:
            assert not reply.is_whole_stream and reply.text.startswith("data: "), reply
        else:
            assert reply.is_whole_stream, reply
    thread.join()
    assert silent[0].status == 502, silent[0]
    # What the others have read since are the short questions alone.
    after = sum(cluster.nodes[name].metrics()["cairn_prompt_rows_total"] for name in others)
    asked = sum(reply.json["memory"]["recomputed"] for reply in refused)
    assert after - before == asked, (before, after, asked)
    cluster.nodes[dying] = cluster.start(cluster.nodes[dying].address).wait_ready()
    cluster.proxy.wait_for(dying, True)


def test_a_server_that_comes(cluster):
    """As docs/operations.md says it: most conversations stay where they are."""
    def homes():
        return [hello(cluster, f"conversation-{seed}").node for seed in range(48)]
    before = homes()
    cluster.nodes["n9"] = cluster.start(cluster.spare).wait_ready()
    for command in (f"add server cairn/n9 {cluster.spare} id 9 check inter 1s fastinter 500ms "
                    "fall 2 rise 1 maxconn 60",
                    "enable health cairn/n9", "enable server cairn/n9"):
        said = cluster.proxy.say(command)
        assert said in ("", "New server registered."), (command, said)
    cluster.proxy.wait_for("n9", True)
    after = homes()
    moved = [new for old, new in zip(before, after) if old != new]
    assert 0 < len(moved) < 30 and set(moved) == {"n9"}, (before, after)
    # And goes again.
    cluster.proxy.say("set server cairn/n9 state drain")
    assert homes() == before


def test_wrong_keys(cluster):
    """A stranger is refused before the servers refuse everybody who comes by the proxy."""
    wrong = {"Authorization": "Bearer a-wrong-key-for-the-tests"}
    statuses = [cluster.ask("/v1/models", headers=wrong).status for _ in range(12)]
    assert statuses == [401] * 4 + [429] * 8, statuses
    assert cluster.ask("/v1/models").json["error"]["type"] == "rate_limit_error"
    for node in cluster.nodes.values():
        assert ask(node.address, "/v1/models").status == 200


def main():
    program = sys.argv[1]
    need("haproxy", "setpriv")
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(program, pathlib.Path(folder))
        try:
            for test in (test_the_proxys_own_routes, test_conversations_stay,
                         test_what_a_server_keeps, test_others_take_the_work,
                         test_a_server_that_stops, test_a_server_that_is_killed,
                         test_a_server_that_comes, test_a_reload, test_wrong_keys):
                test(cluster)
                print(f"passed: {test.__name__}", flush=True)
        finally:
            for process in [cluster.proxy, *cluster.nodes.values()]:
                process.kill()


if __name__ == "__main__":
    main()
