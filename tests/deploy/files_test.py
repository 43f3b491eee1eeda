#!/usr/bin/env python3
"""What deploy/ says to systemd, Docker and Kubernetes: in their own words, and in cairn's.

  files_test.py CAIRN CLIENTS

CLIENTS: a folder of Python packages, beside those of the system. Parts that this machine cannot try
are said to be skipped; exit code 77 where that is all of them.
"""
import ipaddress
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from machines import DEPLOY, Node, Redis, ROOT, children_of, hold_ports

UNIT = ROOT / "packaging/cairn.service"
EXPOSURE_MAX = 1.5  # Of 10, by systemd's own count.
skipped = []


def lacks(*programs):
    missing = [name for name in programs if shutil.which(name) is None]
    skipped.extend(f"needs {name}" for name in missing)
    return bool(missing)


def options_of(program):
    """The long options of `cairn serve`, "--" left out."""
    text = subprocess.run([program, "serve", "--help"], text=True, capture_output=True,
                          check=True).stdout
    return set(re.findall(r"--([a-z][a-z0-9-]+)", text))


def check_variables(names, options, where):
    """Each CAIRN_… that a server is given is one of its options."""
    names = {name for name in names if name.startswith("CAIRN_")}
    for name in names - {"CAIRN_MODELS"}:  # Of all commands: where models are kept.
        option = name.removeprefix("CAIRN_").lower().replace("_", "-")
        assert option in options, f"{where}: {name}: expected an option --{option}, found none"


def test_unit(program, work):
    if lacks("systemd-analyze"):
        return
    # At its own place, beside the program that is there.
    (work / "cairn.service.d").mkdir()
    unit = work / "cairn.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/cairn", program))
    shutil.copy(DEPLOY / "systemd/node.conf", unit.with_suffix(".service.d"))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], text=True,
                             capture_output=True, check=False)
    assert checked.returncode == 0 and not checked.stderr, checked.stderr
    rated = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                            f"--threshold={int(EXPOSURE_MAX * 10)}", unit],
                           text=True, capture_output=True, check=False)
    assert rated.returncode == 0, rated.stdout + rated.stderr
    for wanted in ("DynamicUser=yes", "MemoryMax=", "ProtectSystem=strict", "NoNewPrivileges=yes"):
        assert wanted in UNIT.read_text(), wanted


def test_unit_variables(options):
    for file in (UNIT, DEPLOY / "systemd/node.conf"):
        names = re.findall(r"\b(CAIRN_[A-Z_]+)\b", file.read_text())
        assert names
        check_variables(names, options, file.name)


def allowed_calls():
    """The system calls of the unit's filter, by systemd's sets."""
    lists = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], text=True,
                           capture_output=True, check=True).stdout
    sets, name = {}, None
    for line in lists.splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = set()
        elif name and line.startswith("    ") and "#" not in line:
            sets[name].add(line.strip())

    def members(word):
        if not word.startswith("@"):
            return {word}
        return set().union(*(members(one) for one in sets[word]))
    calls = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", UNIT.read_text(), re.MULTILINE):
        named = set().union(*(members(word) for word in value.lstrip("~").split()))
        calls = calls - named if value.startswith("~") else calls | named
    return calls


def test_unit_calls(program, work):
    """What a server calls, from its start to its end, the unit's filter lets through."""
    if lacks("systemd-analyze", "strace", "redis-server"):
        return
    traced = work / "calls"
    port, redis_port = hold_ports(2)
    redis = Redis(f"127.0.0.1:{redis_port}", work).wait_ready()
    node = Node(program, f"127.0.0.1:{port}", work, "--cache-dir", work / "store",
                "--tier", f"redis://127.0.0.1:{redis_port}", "--tier-publish", "all",
                where=["strace", "-f", "-qq", "-o", traced])
    try:
        node.wait_ready()
        assert node.chat("What is the capital of France?").status == 200
        # strace ends with the program that it watches.
        child, = children_of(node.process.pid)
        os.kill(child, signal.SIGTERM)
        assert node.process.wait(timeout=60) == 0
    finally:
        node.kill()
        redis.kill()
    used = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", traced.read_text(errors="replace"),
                          re.MULTILINE))
    assert {"openat", "listen", "landlock_restrict_self"} <= used, used
    # The first one is systemd's own, before the filter.
    beyond = used - allowed_calls() - {"execve"}
    assert not beyond, f"calls beyond the unit's filter: {beyond}"


def yaml_documents(path):
    import yaml
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def test_compose(options):
    compose, = yaml_documents(DEPLOY / "compose.yaml")
    schema = schema_of("compose/config/compose_spec.json")
    if schema is not None:
        import jsonschema
        wrong = [f"{one.json_path}: {one.message[:200]}"
                 for one in jsonschema.Draft7Validator(schema).iter_errors(compose)]
        assert not wrong, wrong
    services = compose["services"]
    subnet = ipaddress.ip_network(compose["networks"]["tier"]["ipam"]["config"][0]["subnet"])
    assert set(services) == {"key", "redis", "proxy", "cairn-1", "cairn-2"}
    for name, service in services.items():
        assert "healthcheck" in service or name in ("key", "proxy"), name
        for other, when in service.get("depends_on", {}).items():
            ends = when["condition"] == "service_completed_successfully"
            assert ends == (other == "key") and (ends or "healthcheck" in services[other]), other
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            known = (DEPLOY / source).exists() if source.startswith(".") \
                else source in compose["volumes"]
            assert known, volume
        if "build" in service and name != "key":
            check_variables(service["environment"], options, name)
            for word in service["command"]:
                assert not word.startswith("--") or word[2:] in options, word
            assert (DEPLOY / service["build"]["context"] /
                    service["build"]["dockerfile"]).samefile(DEPLOY / "Containerfile")
            assert service["environment"]["CAIRN_TIER"] == "redis://redis:6379"
            assert service["healthcheck"]["test"][1:] == ["healthy", "127.0.0.1", "8080"]
            assert set(service["networks"]) == {"clients", "tier"}
            # Others find it where it listens.
            own = service["networks"]["tier"]["ipv4_address"]
            listens = service["command"][service["command"].index("--peer-listen") + 1]
            assert listens == f"{own}:7400" and ipaddress.ip_address(own) in subnet, listens
            mounts = {volume.split(":")[0]: volume.split(":")[1] for volume in service["volumes"]}
            key = service["environment"]["CAIRN_TIER_KEY"]
            assert pathlib.Path(key).parent == pathlib.Path(mounts["key"]), key
    assert services["redis"]["networks"] == ["tier"] and compose["networks"]["tier"]["internal"]
    test_compose_key(services["key"], options)
    nodes = [name for name in services if "build" in services[name] and name != "key"]
    told = services["proxy"]["environment"]
    assert [told[f"CAIRN_NODE_{n}"] for n in (1, 2)] == [f"{name}:8080" for name in nodes]
    check_proxy_variables(told)


def test_compose_key(service, options):
    """The secret is made once, for its owner alone, and long enough."""
    assert "tier-key" in options
    said, = service["command"]
    with tempfile.TemporaryDirectory() as folder:
        here = said.replace(service["volumes"][0].split(":")[1], folder)
        keys = []
        for _ in range(2):
            subprocess.run([*service["entrypoint"], here], check=True)
            keys.append(pathlib.Path(folder, "tier-key").read_bytes())
        assert keys[0] == keys[1] and len(keys[0]) >= 32
        assert pathlib.Path(folder, "tier-key").stat().st_mode & 0o777 == 0o600


def check_proxy_variables(told):
    file = (DEPLOY / "haproxy.cfg").read_text()
    for name in told:
        assert re.search(rf"\b{name}\b", file), f"haproxy.cfg does not read {name}"


def test_containerfile(program, options):
    text = (DEPLOY / "Containerfile").read_text()
    for source in re.findall(r"^COPY (\S+)", text, re.MULTILINE):
        assert source.startswith("build/package/") or (ROOT / source).exists(), source
    check_variables(re.findall(r"(CAIRN_[A-Z_]+)=", text), options, "Containerfile")
    assert '["cairn", "serve"]' in text and "EXPOSE 8080" in text
    # Its question for health, of a server that is there, one that stops, and none.
    port, = hold_ports(1)
    ask = [DEPLOY / "healthy.sh", "127.0.0.1", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        node = Node(program, f"127.0.0.1:{port}", pathlib.Path(folder), "--drain-seconds", "60")
        try:
            node.wait_ready()
            assert subprocess.run(ask, check=False).returncode == 0
            node.send(signal.SIGTERM)
            while node.health() == 200:
                pass
            assert subprocess.run(ask, check=False).returncode == 1
        finally:
            node.kill()
    gone = subprocess.run(ask, check=False, capture_output=True)
    assert gone.returncode == 1, gone


def containers_of(thing):
    spec = thing["spec"]["template"]["spec"]
    return spec, spec["containers"], spec.get("initContainers", [])


def check_pod(thing, options):
    spec, containers, first = containers_of(thing)
    volumes = {volume["name"] for volume in
               spec["volumes"] + [{"name": one["metadata"]["name"]} for one in
                                  thing["spec"].get("volumeClaimTemplates", [])]}
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    for container in containers + first:
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert set(mounts) <= volumes, (container["name"], mounts)
        assert container["securityContext"]["readOnlyRootFilesystem"]
        for value in [one.get("value", "") for one in container.get("env", [])] + \
                container.get("command", []) + container.get("args", []):
            if value.startswith("/"):
                assert any(value.startswith(path + "/") for path in mounts.values()), value
    for container in containers:
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            for how in ("httpGet", "tcpSocket"):
                about = container.get(probe, {}).get(how)
                assert about is None or about["port"] in ports, (probe, about)
                if how == "httpGet" and about:
                    assert about["path"] == "/health", about
        names = [one["name"] for one in container["env"]] if "env" in container else []
        if container["image"] == "cairn":
            check_variables(names, options, container["name"])
            for word in container["args"]:
                assert not word.startswith("--") or word[2:] in options, word
        elif names:
            check_proxy_variables(names)
    for container in first:
        assert shutil.which(container["command"][0]), container["command"]


def test_kubernetes(options):
    bundle, = yaml_documents(DEPLOY / "kustomization.yaml")
    things = [one for path in bundle["resources"] for one in yaml_documents(DEPLOY / path)]
    listed = {f"kubernetes/{path.name}" for path in (DEPLOY / "kubernetes").iterdir()}
    assert set(bundle["resources"]) == listed
    maps = {one["name"]: one["files"] for one in bundle["configMapGenerator"]}
    for files in maps.values():
        assert all((DEPLOY / file).exists() for file in files), files
    try:
        import kubernetes_validate
    except ImportError:
        skipped.append("schemas of Kubernetes: need the Python package kubernetes-validate")
    else:
        version = kubernetes_validate.latest_version()
        for thing in things:
            kubernetes_validate.validate(thing, version, strict=True)
    by_name = {(thing["kind"], thing["metadata"]["name"]): thing for thing in things}
    assert len(by_name) == len(things)
    pods = {}
    for (kind, _), thing in by_name.items():
        if kind in ("StatefulSet", "Deployment"):
            check_pod(thing, options)
            label = thing["spec"]["template"]["metadata"]["labels"]["app"]
            assert thing["spec"]["selector"]["matchLabels"]["app"] == label
            spec, pods[label], _ = containers_of(thing)
            for volume in spec["volumes"]:
                if "configMap" in volume:
                    assert volume["configMap"]["name"] in maps, volume
    services = {}
    for (kind, name), thing in by_name.items():
        if kind == "Service":
            ports = {port["name"]: port for port in
                     pods[thing["spec"]["selector"]["app"]][0]["ports"]}
            for port in thing["spec"]["ports"]:
                assert ports[port["targetPort"]]["containerPort"] == port["port"], (name, port)
                services[f"{name}:{port['port']}"] = thing
        if kind in ("PodDisruptionBudget", "NetworkPolicy"):
            key = "selector" if kind == "PodDisruptionBudget" else "podSelector"
            label = thing["spec"][key]["matchLabels"]["app"]
            assert label in pods, name
            for rule in thing["spec"].get("ingress", []):
                known = {port["name"] for one in pods[label] for port in one["ports"]}
                assert {port["port"] for port in rule["ports"]} <= known, (name, rule)
    told = {one["name"]: one.get("value") for label in pods for container in pods[label]
            for one in container.get("env", [])}
    # Whom they ask: names that are there, and for the proxy one with the addresses of all.
    assert told["CAIRN_TIER"].removeprefix("redis://") in services, told["CAIRN_TIER"]
    assert services[told["CAIRN_NODES"]]["spec"]["clusterIP"] == "None"
    # Records are lent to those servers alone, where they listen.
    listens = int(told["CAIRN_PEER_LISTEN"].rsplit(":", 1)[1])
    assert {"name": "peers", "containerPort": listens} in pods["cairn"][0]["ports"]
    may = [rule["from"][0]["podSelector"]["matchLabels"]["app"] for rule in
           by_name["NetworkPolicy", "cairn"]["spec"]["ingress"]
           if any(port["port"] == "peers" for port in rule["ports"])]
    assert may == ["cairn"], may
    nodes = by_name["StatefulSet", "cairn"]["spec"]
    assert ("Service", nodes["serviceName"]) in by_name
    grace = nodes["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace > 10 * int(told["CAIRN_DRAIN_SECONDS"])
    scaler = by_name["HorizontalPodAutoscaler", "cairn"]["spec"]
    assert (scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"]) in by_name
    metric = scaler["metrics"][0]["pods"]["metric"]["name"]
    rules, = yaml_documents(DEPLOY / "prometheus/alerts.yaml")
    records = [rule.get("record") for group in rules["groups"] for rule in group["rules"]]
    adapter, = yaml_documents(DEPLOY / "prometheus/adapter.yaml")
    assert metric in records and adapter["rules"][0]["name"]["as"] == metric


def schema_of(path):
    """A JSON file of a Python package, or null."""
    for folder in sys.path:
        file = pathlib.Path(folder, path)
        if file.is_file():
            return json.loads(file.read_text())
    skipped.append(f"{path}: needs the Python package docker-compose")
    return None


def main():
    program, clients = map(os.path.abspath, sys.argv[1:])
    sys.path.append(clients)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    options = options_of(program)
    done = []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        tests = {test_unit: (program, work), test_unit_variables: (options,),
                 test_unit_calls: (program, work), test_containerfile: (program, options)}
        try:
            import yaml  # noqa: F401
            tests |= {test_compose: (options,), test_kubernetes: (options,)}
        except ImportError:
            skipped.append("compose and Kubernetes: need the Python package PyYAML")
        for test, arguments in tests.items():
            before = len(skipped)
            test(*arguments)
            if len(skipped) == before:
                done.append(test)
                print(f"passed: {test.__name__}", flush=True)
    for why in skipped:
        print(f"skipped: {why}")
    sys.exit(0 if done else 77)


if __name__ == "__main__":
    main()
