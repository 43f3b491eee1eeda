#!/usr/bin/env python3
"""Requests that schemathesis makes of the OpenAPI document, with a fixed seed: whatever it sends,
the server answers as the document says, without a member that it does not have, and never with an
error of its own. Exits 77 where it is not installed.

  document_client.py CAIRN FOLDER

FOLDER: where it is installed beside other packages; it may be missing.
"""
import json
import sys
import urllib.request

from serving import KEY, Server

EXAMPLES = 8  # Of each route.
# Streams without an end, and what is no JSON.
OTHERS = ("/v1/memory/events", "/metrics", "/", "/page/{name}")
STATUSES = (200, 400, 404, 415, 501)  # 501: what the model was not made for.


MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
# Requests that are answered, which others seldom are; each whole and as a stream.
ANSWERED = {
    "/v1/chat/completions": {"messages": MESSAGES, "logprobs": True, "top_logprobs": 2,
                             "max_tokens": 8, "stream_options": {"include_usage": True}},
    "/v1/completions": {"prompt": "x", "echo": True, "logprobs": 1, "max_tokens": 8},
    "/v1/responses": {"input": "x", "max_output_tokens": 8},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 8},
    "/api/chat": {"messages": MESSAGES, "options": {"num_predict": 8}},
    "/api/generate": {"prompt": "x", "options": {"num_predict": 8}},
    "/completion": {"prompt": "x", "n_predict": 8, "n_probs": 2},
}
HEADERS = {"Authorization": f"Bearer {KEY}"}


def make_strict(schema):
    """Objects whose members are listed have no others."""
    if isinstance(schema, list):
        for part in schema:
            make_strict(part)
    elif isinstance(schema, dict):
        for part in schema.values():
            make_strict(part)
        if isinstance(schema.get("properties"), dict):
            schema.setdefault("additionalProperties", False)


def document_of(server):
    request = urllib.request.Request(server.url + "/openapi.json", headers=HEADERS)
    with urllib.request.urlopen(request, timeout=60) as reply:
        document = json.load(reply)
    make_strict(document["components"]["schemas"])
    for operations in document["paths"].values():
        for operation in operations.values():
            make_strict(operation["responses"])
    return document


def streamed(reply, kind):
    """The values of a stream: of its lines, or of its events' data."""
    for line in reply.text.split("\n"):
        if kind == "application/x-ndjson" and line:
            yield json.loads(line)
        elif line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[6:])


def check_stream(case, reply, kind, document):
    """That schemathesis does not look into."""
    import jsonschema_rs
    told = document["paths"][case.path][case.method.lower()]["responses"]["200"]
    schema = told["content"][kind]["schema"]
    if kind == "text/event-stream":
        data = schema["properties"]["data"]
        schema, = [way["contentSchema"] for way in data.get("anyOf", [data])
                   if "contentSchema" in way]
    validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
    for value in streamed(reply, kind):
        validator.validate(value)


def check(case, url, conformance, document):
    reply = case.call(base_url=url, headers=HEADERS, timeout=60)
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
        check_stream(case, reply, kind, document)
    return reply.status_code


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
        document = document_of(server)
        schema = schemathesis.openapi.from_dict(document)
        conformance = [checks.status_code_conformance, checks.content_type_conformance,
                       checks.response_schema_conformance]
        count = answered = 0
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path in OTHERS:
                continue
            count += 1
            if operation.method.lower() == "post" and operation.path in ANSWERED:
                for stream in (False, True):
                    body = {**ANSWERED[operation.path], "stream": stream}
                    answered += check(
                        operation.Case(body=body, media_type="application/json"),
                        server.url, conformance, document) == 200
            settings(hypothesis.given(operation.as_strategy())(
                lambda case: check(case, server.url, conformance, document) and None))()
        assert count > 30, count
        assert answered == 2 * len(ANSWERED), answered


if __name__ == "__main__":
    main()
