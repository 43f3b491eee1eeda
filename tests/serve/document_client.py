#!/usr/bin/env python3
"""Requests that schemathesis makes of the OpenAPI document, with a fixed seed: whatever it sends,
the server answers as the document says, and never with an error of its own. Exits 77 where it is
not installed.

  document_client.py CAIRN FOLDER

FOLDER: where it is installed beside other packages; it may be missing.
"""
import json
import sys

from serving import KEY, Server

EXAMPLES = 8  # Of each route.
# Streams without an end, and what is no JSON.
OTHERS = ("/v1/memory/events", "/metrics", "/", "/page/{name}")
STATUSES = (200, 400, 404, 415, 501)  # 501: what the model was not made for.


def check(case, url, conformance):
    headers = {"Authorization": f"Bearer {KEY}"}
    reply = case.call(base_url=url, headers=headers, timeout=60)
    told = f"{case.method} {case.path} {case.body!r:.500}: {reply.status_code} {reply.text:.500}"
    assert reply.status_code in STATUSES, told
    case.validate_response(reply, checks=conformance)
    kind, = reply.headers["content-type"]
    if kind.startswith("application/json"):
        value = json.loads(reply.text)
        is_error = reply.status_code != 200
        assert not is_error or "error" in value, told
    else:
        assert reply.status_code == 200 and kind in (
            "text/event-stream", "application/x-ndjson"), told


def main():
    program, folder = sys.argv[1:]
    sys.path.insert(0, folder)
    try:
        import hypothesis
        import schemathesis
        from schemathesis.specs.openapi import checks
    except ModuleNotFoundError as missing:
        print(missing)
        sys.exit(77)
    settings = hypothesis.settings(
        max_examples=EXAMPLES, derandomize=True, deadline=None, database=None,
        phases=[hypothesis.Phase.generate], suppress_health_check=list(hypothesis.HealthCheck))
    with Server(program, "-c", "512") as server:
        schema = schemathesis.openapi.from_url(
            server.url + "/openapi.json", headers={"Authorization": f"Bearer {KEY}"})
        conformance = [checks.status_code_conformance, checks.content_type_conformance,
                       checks.response_schema_conformance]
        count = 0
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path in OTHERS:
                continue
            count += 1
            settings(hypothesis.given(operation.as_strategy())(
                lambda case: check(case, server.url, conformance)))()
        assert count > 30, count


if __name__ == "__main__":
    main()
