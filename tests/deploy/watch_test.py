#!/usr/bin/env python3
"""Dashboard, alarms and runbook: every metric that they name is one that a running server, or the
proxy, tells; every expression is one; every alarm has its paragraph in docs/operations.md.

  watch_test.py CAIRN
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from machines import DEPLOY, ROOT, Node, Proxy, Redis, ask, hold_ports, need

RULES = DEPLOY / "prometheus/alerts.yaml"
BOARD = json.loads((DEPLOY / "grafana/cairn.json").read_text())
# What Grafana puts in.
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}


def expressions():
    """Of the dashboard and of the rules, with what they are for."""
    for panel in BOARD["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            yield panel["title"], text
    for variable in BOARD["templating"]["list"]:
        if found := re.match(r"label_values\((\w+), \w+\)", variable["query"]):
            yield "a variable", found[1]
    # Blocks and single lines of YAML alike.
    for found in re.finditer(r"^ +expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", RULES.read_text(),
                             re.MULTILINE):
        yield "a rule", (found[1] or found[2]).strip()


def names_in(text):
    bare = re.sub(r'"[^"]*"', "", text)
    return set(re.findall(r"\b((?:cairn|haproxy|llamacpp)[a-z_:]+)\b", bare))


def told_names(text):
    """With those that have no value yet: they have a type."""
    names = set(re.findall(r"^# TYPE (\S+) (?!histogram)", text, re.MULTILINE))
    for name in re.findall(r"^# TYPE (\S+) histogram", text, re.MULTILINE):
        names |= {name + end for end in ("_bucket", "_sum", "_count")}
    return names


def test_names(program, folder):
    ports = hold_ports(5)
    redis = Redis(f"127.0.0.1:{ports[0]}", folder).wait_ready()
    node = Node(program, f"127.0.0.1:{ports[1]}", folder, "--cache-dir", folder / "store",
                "--tier", f"redis://127.0.0.1:{ports[0]}", "--tier-publish", "all",
                "--peer-listen", "127.0.0.1:0")
    proxy = Proxy(f"127.0.0.1:{ports[2]}", folder, [node.address], ports=ports[3:5])
    try:
        node.wait_ready()
        proxy.wait_ready("n1")
        assert node.chat("What is the capital of France?").status == 200
        told = told_names(ask(node.address, "/metrics").text)
        told |= told_names(ask(f"127.0.0.1:{ports[3]}", "/metrics").text)
        outcomes = set(re.findall(r'cairn_(?:tier|peer)_lookups_total\{[^}]*outcome="(\w+)"',
                                  ask(node.address, "/metrics").text))
    finally:
        for process in (proxy, node, redis):
            process.kill()
    recorded = set(re.findall(r"record: (\w+)", RULES.read_text()))
    used = {name for _, text in expressions() for name in names_in(text)}
    assert len(used) > 30 and recorded <= used | {"cairn_reuse_ratio"}, used
    unknown = used - told - recorded
    assert not unknown, f"expected metrics of a server or the proxy, found {sorted(unknown)}"
    # An outcome that an alarm looks for is one of those that docs/tier.md has.
    words = set(re.findall(r"^\| `(\w+)` \| ", (ROOT / "docs/tier.md").read_text(), re.MULTILINE))
    asked = set(re.findall(r'outcome="(\w+)"', RULES.read_text()))
    assert asked <= words and outcomes <= words, (asked, outcomes, words)


def test_dashboard():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


def test_expressions(folder):
    """By Prometheus' own reader."""
    if shutil.which("promtool") is None:
        print("skipped: the expressions need promtool")
        return
    check(RULES)
    rules = [{"record": f"panel_{index}", "expr": text}
             for index, (_, text) in enumerate(expressions())]
    assert len(rules) > 40
    file = folder / "panels.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    check(file)


def check(file):
    done = subprocess.run(["promtool", "check", "rules", file], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alarms_fire(folder):
    """On figures of the kind that they are for, and on no others."""
    if shutil.which("promtool") is None:
        print("skipped: the alarms need promtool")
        return
    shutil.copy(RULES, folder / "alerts.yaml")
    shutil.copy(pathlib.Path(__file__).with_name("alarms.yaml"), folder / "alarms.yaml")
    done = subprocess.run(["promtool", "test", "rules", folder / "alarms.yaml"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = set(re.findall(r"alertname: (\w+)", (folder / "alarms.yaml").read_text()))
    assert tried == alarms(), tried ^ alarms()


def alarms():
    return set(re.findall(r"alert: (\w+)", RULES.read_text()))


def test_runbook():
    text = (ROOT / "docs/operations.md").read_text()
    paragraphs = dict(re.findall(r"^\*\*(Cairn\w+)\*\*[.:] (.*?)\n(?:\n|\Z)", text,
                                 re.MULTILINE | re.DOTALL))
    assert set(paragraphs) == alarms(), set(paragraphs) ^ alarms()
    for name, paragraph in paragraphs.items():
        assert len(paragraph) > 100, f"{name}: expected what it means and what to do: {paragraph}"
    # What it tells people to type is there.
    for path in re.findall(r"deploy/[\w/.-]+\w", text):
        assert (ROOT / path).exists(), path
    told = (ROOT / "src/serve/metrics.cpp").read_text()
    for name in re.findall(r"`(cairn_[a-z_]+)", text):
        assert name in told or any(name in expression for _, expression in expressions()), name


def main():
    program = sys.argv[1]
    need("haproxy", "redis-server", "setpriv")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for test, arguments in {test_names: (program, folder), test_dashboard: (),
                                test_expressions: (folder,), test_alarms_fire: (folder,),
                                test_runbook: ()}.items():
            test(*arguments)
            print(f"passed: {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
